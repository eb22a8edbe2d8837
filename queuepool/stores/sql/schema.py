"""The schema of the existing tables: Laravel's have changed over the years."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, inspect

from queuepool.errors import StoreDenied
from queuepool.stores.sql.tables import Tables

#: the most attempts that the table of the newest Laravel holds, and our own
MOST_ATTEMPTS = 65535
#: the largest number by type of the column: signed, unsigned
_LARGEST = {"TINYINT": (127, 255), "SMALLINT": (32767, MOST_ATTEMPTS)}
#: those that we make, by their usual names
TABLES = ("jobs", "failed_jobs", "cache", "cache_locks")
#: without these nothing works; the others are for jobs of some kinds
REQUIRED = TABLES[:3]
#: the settings that give them other names
_KEYS = {"jobs": "jobs_table", "failed_jobs": "failed_table", "cache": "cache_table", "cache_locks": "lock_table"}
_OTHER_NAME = "if another program has made it, name ours by [connection] {} (docs/producers.md#names-of-tables)"
_NO_UUID = "as before Laravel 8: add it, varchar(255), unique, and give every row its own"


@dataclass(frozen=True, slots=True)
class Schema:
    """What we need to know about ``jobs``: ``most_attempts`` is the largest number that its column holds."""

    most_attempts: int


def schema_of(connection: Connection, table: Table) -> Schema:
    """The schema of the ``jobs`` table. Raises ``StoreDenied`` when it cannot be used."""
    columns = _columns(connection, table)
    for problem in _problems("jobs", table, columns):
        raise StoreDenied(problem)
    return Schema(_largest(columns["attempts"]))


def problems_of(connection: Connection, tables: Tables, usual: str) -> list[str]:
    """Why the table with this usual name cannot be used."""
    table = tables.table(usual)
    return list(_problems(usual, table, _columns(connection, table)))


def oddity_of(connection: Connection, table: Table) -> str:
    """A warning about a ``jobs`` table without problems; empty if there is none."""
    most = schema_of(connection, table).most_attempts
    if most > 255:
        return ""
    return f"the column attempts of {table.name} is tinyint, as before Laravel 13: a job's {most}th attempt fails it"


def missing(connection: Connection, tables: Tables) -> str:
    """The first table that is needed and missing; empty if none is."""
    names = [tables.table(usual) for usual in REQUIRED]
    there = inspect(connection).has_table
    return next((table.name for table in names if not there(table.name, schema=table.schema)), "")


def _columns(connection: Connection, table: Table) -> dict[str, Any]:
    """The columns' types, by name. Raises SQLAlchemy's ``NoSuchTableError``, which the client translates."""
    return {one["name"]: one["type"] for one in inspect(connection).get_columns(table.name, schema=table.schema)}


def _problems(usual: str, table: Table, columns: Mapping[str, Any]) -> Iterator[str]:
    missing, name = sorted(table.columns.keys() - columns.keys()), table.name
    if usual == "jobs" and "reserved" in columns:
        yield f"the table {name} has a column `reserved`, as of Laravel 5.2: migrate it to Laravel 5.3 or later"
    elif usual == "failed_jobs" and missing == ["uuid"]:
        yield f"the table {name} has no column uuid, {_NO_UUID}"
    elif missing:
        yield f"the table {name} has no column {missing[0]}: it is not Laravel's; {_OTHER_NAME.format(_KEYS[usual])}"


def _largest(kind: Any) -> int:
    signed, unsigned = _LARGEST.get(type(kind).__name__, (MOST_ATTEMPTS, MOST_ATTEMPTS))
    return unsigned if getattr(kind, "unsigned", False) else signed
