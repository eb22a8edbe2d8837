"""Laravel's tables, as far as we read and write them, by the names that the configuration gives them.

Source: Illuminate/Queue/Console/stubs and Illuminate/Cache/Console/stubs (8.83 to 13.x).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache as remembered
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import scheme_of


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names; ``schema`` is PostgreSQL's, empty = the first of the ``search_path``."""

    jobs: str = "jobs"
    failed_jobs: str = "failed_jobs"
    cache: str = "cache"
    cache_locks: str = "cache_locks"
    job_batches: str = "job_batches"
    schema: str = ""

    @classmethod
    def of(cls, settings: ConnectionSettings, url: str) -> TableNames:
        """Those of a connection, in this one of its databases."""
        own = settings.jobs_table, settings.failed_table, settings.cache_table, settings.lock_table
        schema = settings.schema if scheme_of(url) == "postgresql" else ""
        return cls(*own, settings.batches_table, schema)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one database. Get them by ``tables_of``."""

    names: TableNames
    jobs: Table = field(repr=False)
    failed_jobs: Table = field(repr=False)
    cache: Table = field(repr=False)
    cache_locks: Table = field(repr=False)
    #: read only: Laravel counts
    job_batches: Table = field(repr=False)

    def table(self, usual: str) -> Table:
        """One of them by the name that it has in Laravel."""
        found: Table = getattr(self, usual)
        return found


@remembered
def tables_of(names: TableNames) -> Tables:
    """The tables of these names; for a given name always the same, as SQLAlchemy remembers what it renders for them."""
    return Tables(
        names,
        _table(names.jobs, names.schema, _jobs_columns()),
        _table(names.failed_jobs, names.schema, _failed_columns()),
        _table(names.cache, names.schema, _cache_columns("value")),
        _table(names.cache_locks, names.schema, _cache_columns("owner")),
        _table(names.job_batches, names.schema, _batch_columns()),
    )


def _jobs_columns() -> list[Column[Any]]:
    return [
        Column("id", BigInteger, primary_key=True),
        Column("queue", Text),
        Column("payload", Text),
        Column("attempts", Integer),
        #: whole Unix seconds; null = not reserved
        Column("reserved_at", BigInteger),
        #: whole Unix seconds; for a job that our worker has reserved, the mark of its lease (``lease_tags``)
        Column("available_at", BigInteger),
        Column("created_at", BigInteger),
    ]


def _failed_columns() -> list[Column[Any]]:
    texts = [Column(name, Text) for name in ("uuid", "connection", "queue", "payload", "exception")]
    #: ``failed_at`` is in UTC; read and written through ``Clock``
    return [Column("id", BigInteger, primary_key=True), *texts, Column("failed_at")]


def _cache_columns(what: str) -> list[Column[Any]]:
    #: ``expiration`` is in Unix seconds
    return [Column("key", Text, primary_key=True), Column(what, Text), Column("expiration", BigInteger)]


def _batch_columns() -> list[Column[Any]]:
    numbers = [Column(name, Integer) for name in ("total_jobs", "pending_jobs", "failed_jobs", "cancelled_at")]
    return [Column("id", Text, primary_key=True), Column("name", Text), *numbers]


def _table(name: str, schema: str, columns: list[Column[Any]]) -> Table:
    return Table(name, MetaData(), *columns, schema=schema or None)


#: by Laravel's own names
USUAL = tables_of(TableNames())
