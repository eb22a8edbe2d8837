"""Compares names by their bytes, as Redis and most databases do. MySQL's collations treat many names as equal.

The comparison that MySQL's index supports comes first: it finds a few rows, whose bytes are then compared.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Dialect, LargeBinary, Text, and_, cast, func, literal_column, type_coerce

_MYSQL = ("mysql", "mariadb")
_UTF8: ColumnElement[Any] = literal_column("utf8mb4")


def is_name(dialect: Dialect, column: ColumnElement[Any], name: Any) -> ColumnElement[bool]:
    """Whether the column is exactly this name."""
    same = column == name
    return and_(same, _bytes_of(column) == name) if dialect.name in _MYSQL else same


def is_one_of(dialect: Dialect, column: ColumnElement[Any], names: Any) -> ColumnElement[bool]:
    """Whether the column is exactly one of these names."""
    same = column.in_(names)
    return and_(same, _bytes_of(column).in_(names)) if dialect.name in _MYSQL else same


def exactly(dialect: Dialect, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The exact name, for comparisons among rows."""
    return _bytes_of(column) if dialect.name in _MYSQL else column


def _bytes_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The bytes in the connection's encoding, whatever the column's is.

    Trailing spaces count, which they do in no collation that both MySQL and MariaDB have.
    """
    return type_coerce(cast(func.convert(column.op("USING")(_UTF8)), LargeBinary), Text)
