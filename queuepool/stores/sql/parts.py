"""The numbers of members in the parts that a statement names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import ARRAY, Column, ColumnElement, Connection, any_, literal

K = TypeVar("K")
#: rows that one statement names
_ROWS = 500
#: rows that are locked one by one
_FEW = 8
#: databases that read all rows of a short table for several of them, and wait for each that others have locked
_READS_ALL = ("mysql", "mariadb")


def parts_of(numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    """These in parts that a statement can name."""
    return (numbers[first : first + _ROWS] for first in range(0, len(numbers), _ROWS))


def among(connection: Connection, column: Column[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """Whether the column has one of these. As an array, if the database has any: many parameters cost it more."""
    if connection.dialect.name == "postgresql":
        return column == any_(literal(list(values), ARRAY(column.type)))
    return column.in_(values)


def by_count(counts: Mapping[K, int]) -> Iterator[tuple[int, list[K]]]:
    """Each count, with all that have it."""
    for count in sorted(set(counts.values())):
        yield count, [key for key in counts if counts[key] == count]


def locked_parts(connection: Connection, numbers: Sequence[str]) -> Iterator[Sequence[str]]:
    """These in the parts in which they are to be locked or changed.

    MySQL takes a few one by one: for several of a short table it reads all rows, and waits for each that others have
    locked.
    """
    if connection.dialect.name in _READS_ALL and len(numbers) <= _FEW:
        return ([number] for number in numbers)
    return parts_of(numbers)
