"""Creates Laravel's tables, and our own, where they are missing; never alters an existing one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Table, inspect

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import database_of, kind_of, scheme_of
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.ddl import renamed, statements_of
from queuepool.stores.sql.tables import TABLES, TableNames, problems_of, tables_of


def migrate(client: SqlClient, tables: Collection[str] = TABLES) -> list[str]:
    """Create the missing ones of these tables, by usual names, or SQLite's whole file; returns those created.

    Raises ``StoreDown`` or ``StoreError``.
    """
    if scheme_of(client.url) == "sqlite" and not Path(database_of(client.url)).exists():
        # The first statement creates the file with its tables.
        found = client.ask(lambda connection: inspect(connection).get_table_names())
        return [name for usual in TABLES if (name := client.tables.table(usual).name) in found]
    return client.transaction(partial(_make_missing, tables=[(usual, client.tables.table(usual)) for usual in tables]))


def places_of(connections: Iterable[ConnectionSettings]) -> dict[tuple[str, TableNames], list[str]]:
    """The tables (usual names, in order) that belong in each database, by its URL and their actual names."""
    found: dict[tuple[str, TableNames], dict[str, None]] = {}
    for one in connections:
        caches = [(table, url) for url in (one.control_url, one.maintenance_url) for table in ("cache", "cache_locks")]
        others = [("failed_jobs", one.failed_url), *caches, ("cache_locks", one.lock_url)]
        for table, url in (*((table, one.url) for table in TABLES), *others):
            if url and kind_of(url) == "sql":
                found.setdefault((url, TableNames.of(one, url)), {})[table] = None
    return {place: list(tables) for place, tables in found.items()}


def client_at(url: str, names: TableNames) -> SqlClient:
    """A client that may create a file."""
    return SqlClient(url, create=True, tables=tables_of(names))


def problems(client: SqlClient, tables: Collection[str] = TABLES) -> list[str]:
    """Why existing tables cannot be used. Raises ``StoreDown`` or ``StoreError``."""
    return client.ask(lambda c: [words for usual in tables for words in problems_of(c, client.tables, usual)])


def _make_missing(connection: Connection, tables: Iterable[tuple[str, Table]]) -> list[str]:
    found = inspect(connection)  # which remembers what it has read
    missing = {usual: table for usual, table in tables if table.name not in found.get_table_names(table.schema)}
    for schema in {table.schema for table in missing.values() if table.schema}:
        # Not IF NOT EXISTS, for which PostgreSQL requires the right to create it even if it exists.
        if not found.has_schema(schema):
            connection.exec_driver_sql(f'CREATE SCHEMA "{schema}"')
    made = statements_of(connection.dialect.name)
    for usual, table in missing.items():
        for statement in made[usual]:
            connection.exec_driver_sql(renamed(statement, usual, table))
    return [table.name for table in missing.values()]
