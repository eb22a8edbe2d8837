"""Laravel's tables, made where they are missing; never is one that is there altered."""

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
    """Make what is missing of these, or SQLite's whole file; gives the names of the tables that were made.

    Raises ``StoreDown`` or ``StoreError``.
    """
    if scheme_of(client.url) == "sqlite" and not Path(database_of(client.url)).exists():
        # It is made with its tables, at the first statement.
        return client.ask(lambda connection: inspect(connection).get_table_names()) and list(TABLES)
    return client.transaction(partial(_make_missing, tables=tables))


def problems(client: Client, tables: Collection[str] = TABLES) -> list[str]:
    """Why tables that were there before us cannot be worked with."""
    return client.ask(lambda connection: [words for table in tables for words in problems_of(connection, table)])


def _make_missing(connection: Connection, tables: Collection[str]) -> list[str]:
    there = set(inspect(connection).get_table_names())
    made = statements_of(connection.dialect.name)
    missing = {name: made[name] for name in tables if name not in there}
    for statements in missing.values():
        for statement in statements:
            connection.exec_driver_sql(statement)
    return list(missing)
