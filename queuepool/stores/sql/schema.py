"""The schema of the existing tables: Laravel's have changed over the years."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, exc, inspect

from queuepool.errors import StoreDenied
from queuepool.stores.sql.tables import cache, cache_locks, failed_jobs, jobs

#: the most attempts that the table of the newest Laravel holds, and our own
MOST_ATTEMPTS = 65535
#: the largest number by type of the column: signed, unsigned
_LARGEST = {"TINYINT": (127, 255), "SMALLINT": (32767, MOST_ATTEMPTS)}
_COLUMNS = {table.name: {column.name for column in table.columns} for table in (jobs, failed_jobs, cache, cache_locks)}
TABLES = tuple(_COLUMNS)
#: without these nothing works; the others are for jobs of some kinds
REQUIRED = TABLES[:3]
_NO_UUID = (
    "the table failed_jobs has no column uuid, as before Laravel 8: add it, varchar(255), unique, and give every row "
    "its own"
)


@dataclass(frozen=True, slots=True)
class Schema:
    """What we need to know about ``jobs``: ``most_attempts`` is the largest number that its column holds."""

    most_attempts: int


def schema_of(connection: Connection) -> Schema:
    """The schema of the ``jobs`` table. Raises ``StoreDenied`` when it is missing or cannot be used."""
    columns = _columns(connection, "jobs")
    for problem in _problems("jobs", columns):
        raise StoreDenied(problem)
    return Schema(_largest(columns["attempts"]))


def problems_of(connection: Connection, table: str) -> list[str]:
    """Why this table cannot be used. Raises ``StoreDenied`` when it is missing."""
    return list(_problems(table, _columns(connection, table)))


def oddity_of(connection: Connection) -> str:
    """A warning about tables without problems; empty if there is none."""
    most = schema_of(connection).most_attempts
    if most > 255:
        return ""
    return f"the column attempts of jobs is tinyint, as before Laravel 13: a job's {most}th attempt fails it"


def _columns(connection: Connection, table: str) -> dict[str, Any]:
    """The columns' types, by name."""
    try:
        return {one["name"]: one["type"] for one in inspect(connection).get_columns(table)}
    except exc.NoSuchTableError:
        raise StoreDenied(f"the database has no table {table}: run `queuepool migrate`") from None


def _problems(table: str, columns: Mapping[str, Any]) -> Iterator[str]:
    missing = sorted(_COLUMNS[table] - columns.keys())
    if table == "jobs" and "reserved" in columns:
        yield "the table jobs has a column `reserved`, as of Laravel 5.2: migrate it to Laravel 5.3 or later"
    elif table == "failed_jobs" and missing == ["uuid"]:
        yield _NO_UUID
    elif missing:
        yield f"the table {table} has no column {missing[0]}: it is not Laravel's"


def _largest(kind: Any) -> int:
    signed, unsigned = _LARGEST.get(type(kind).__name__, (MOST_ATTEMPTS, MOST_ATTEMPTS))
    return unsigned if getattr(kind, "unsigned", False) else signed
