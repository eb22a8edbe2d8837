"""The statements of Laravel's migrations, and for our own table, in one file for each family of databases.

Source: Illuminate/Queue/Console/stubs and Illuminate/Cache/Console/stubs (13.x).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from sqlalchemy import Table

from queuepool.stores.sql.tables import Tables

#: bytes of a table's name in the name of an index, so that PostgreSQL and MySQL do not cut or refuse it
_LONGEST = 28


@cache
def statements_of(database: str) -> Mapping[str, list[str]]:
    """The statements for this database, by the table that they create."""
    family = "mysql" if database == "mariadb" else database
    text = (files(__package__) / f"{family}.sql").read_text()
    _, *parts = re.split(r"^-- (\w+)\n", text, flags=re.MULTILINE)
    return {name: made.strip().splitlines() for name, made in zip(parts[::2], parts[1::2], strict=True)}


def renamed(statement: str, usual: str, table: Table) -> str:
    """The statement for a table of another name, whose indexes are named after it as Laravel's are.

    All statements quote names; these were checked before (``config.values.table``).
    """
    place = f'"{table.schema}".' if table.schema else ""
    named = re.sub(rf'(["`]){usual}\1', rf"{place}\g<1>{table.name}\g<1>", statement)
    return re.sub(rf'(["`]){usual}_(\w+_(?:index|unique|primary))\1', rf"\g<1>{table.name[:_LONGEST]}_\2\g<1>", named)


def new_file_of(tables: Tables) -> Iterator[str]:
    """The statements for a new SQLite file."""
    for usual, statements in statements_of("sqlite").items():
        yield from (renamed(statement, usual, tables.table(usual)) for statement in statements)
