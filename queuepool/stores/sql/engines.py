"""How each database is opened: its driver, its time-outs, its durability. The drivers are named here alone."""

from __future__ import annotations

import socket
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import NullPool

from queuepool.config_urls import database_of
from queuepool.stores.sql import postgresql, sqlite

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}


def load_driver(url: str) -> None:
    """Import it, and SQLAlchemy's part of it."""
    _named(url).get_dialect().import_dbapi()


def open_engine(url: str, *, shared: bool, patience: float, create: bool) -> Engine:
    """Nothing is sent yet. Producers (``shared``) have a pool of connections, a loop has one."""
    named = _named(url)
    # Nothing is left open that would have to be reset.
    pool: dict[str, Any] = {"max_overflow": -1, "pool_reset_on_return": None} if shared else {"poolclass": NullPool}
    openers = {"sqlite": _sqlite, "postgresql": postgresql.open_engine}
    return openers.get(named.get_backend_name(), _mysql)(named, pool, shared, patience, create)


def _named(url: str) -> URL:
    """With its driver."""
    parsed = make_url(url)
    # Up to 2.0 SQLAlchemy takes the escapes in the database's name for the name.
    return parsed.set(drivername=DRIVERS[parsed.get_backend_name()], database=database_of(url))


def begin_of(connection: Connection) -> str:
    """The statement that begins a transaction on it."""
    if connection.dialect.name == "sqlite":
        return "BEGIN IMMEDIATE"  # else it finds out in the middle that others write, when it is too late to wait
    return postgresql.begin_lent(connection) if postgresql.is_lent(connection) else "BEGIN"


def _sqlite(url: URL, pool: dict[str, Any], shared: bool, patience: float, create: bool) -> Engine:
    path = Path(url.database or "").absolute()
    opener = partial(sqlite.connect, path, durable=shared, patience=patience, create=create)
    return create_engine(url, creator=opener, isolation_level="AUTOCOMMIT", **pool)


def _mysql(url: URL, pool: dict[str, Any], shared: bool, patience: float, create: bool) -> Engine:
    # Strict: else a queue's name that is too long would be cut without a word.
    session = (
        "SET SESSION time_zone = '+00:00', sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), "
        f"innodb_lock_wait_timeout = {max(int(patience), 1)}"
    )
    waits = {"connect_timeout": max(int(patience), 2), "read_timeout": patience + 1, "write_timeout": patience + 1}
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={"charset": "utf8mb4", "init_command": session, **waits},
        pool_pre_ping=shared,
        **pool,
    )

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        return _tidy_connection()(*args, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    return engine


@cache
def _tidy_connection() -> Any:
    import pymysql
    from pymysql.connections import Connection

    class Tidy(Connection):  # type: ignore[misc]
        """PyMySQL's, which leaves a unix socket open that nobody answers at."""

        def connect(self, sock: socket.socket | None = None) -> None:
            if sock is None and self.unix_socket:
                sock = socket.socket(socket.AF_UNIX)
                sock.settimeout(self.connect_timeout)
                try:
                    sock.connect(self.unix_socket)
                except OSError as error:
                    sock.close()
                    raise pymysql.OperationalError(2002, f"cannot connect: {error.strerror or error}") from error
                self._secure = True  # as PyMySQL says of a socket that it has opened itself
            super().connect(sock)

    return Tidy
