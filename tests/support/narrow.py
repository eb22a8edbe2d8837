"""Databases that do not hold every character."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from queuepool.stores.sql.migrate import TABLES, migrate
from tests.support.databases import DatabaseServer

#: those of MariaDB, which each column has; PostgreSQL's are of a whole database
OF_COLUMNS = ("utf8mb3", "latin1")


@contextmanager
def narrow_database(server: DatabaseServer, encoding: str) -> Iterator[str]:
    """The URL of a database with this encoding, and Laravel's tables in it."""
    name, of_columns = f"narrow_{encoding.lower()}", encoding in OF_COLUMNS
    words = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    server.execute(server.url, f"CREATE DATABASE {name} {'' if of_columns else words}")
    url = server.brand.url(name)
    try:
        with closing(Stores(ConnectionSettings(url=url))) as stores:
            migrate(stores.client)
        if of_columns:
            server.execute(url, *(f"ALTER TABLE {table} CONVERT TO CHARACTER SET {encoding}" for table in TABLES))
        yield url
    finally:
        server.execute(server.url, f"DROP DATABASE {name}")
