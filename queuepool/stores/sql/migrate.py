"""Creates Laravel's tables where they are missing; never alters an existing one."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, inspect

from queuepool.config.urls import database_of, scheme_of
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.ddl import statements_of
from queuepool.stores.sql.schema import TABLES, problems_of


def migrate(client: Client, tables: Collection[str] = TABLES) -> list[str]:
    """Create the missing ones of these tables, or SQLite's whole file; returns the names of those created.

    Raises ``StoreDown`` or ``StoreError``.
    """
    if scheme_of(client.url) == "sqlite" and not Path(database_of(client.url)).exists():
        # The first statement creates it, with its tables.
        return client.ask(lambda connection: inspect(connection).get_table_names()) and list(TABLES)
    return client.transaction(partial(_make_missing, tables=tables))


def problems(client: Client, tables: Collection[str] = TABLES) -> list[str]:
    """Why existing tables cannot be used. Raises ``StoreDown`` or ``StoreError``."""
    return client.ask(lambda connection: [words for table in tables for words in problems_of(connection, table)])


def _make_missing(connection: Connection, tables: Collection[str]) -> list[str]:
    there = set(inspect(connection).get_table_names())
    made = statements_of(connection.dialect.name)
    missing = {name: made[name] for name in tables if name not in there}
    for statements in missing.values():
        for statement in statements:
            connection.exec_driver_sql(statement)
    return list(missing)
