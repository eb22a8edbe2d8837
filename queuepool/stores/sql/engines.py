"""How to open each database: its driver, its time-outs, its durability. Only this module names the drivers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import NullPool

from queuepool.config.urls import database_of, nodes_of, of_one_node
from queuepool.stores.sql import postgresql, sqlite
from queuepool.stores.sql.errors import Database
from queuepool.stores.sql.postgresql import LATEST_COMMIT

DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}


def load_driver(url: str) -> None:
    """Import the driver for this URL with all that is ours of it, and SQLAlchemy's dialect."""
    dialect = _named(url).get_dialect()
    dialect.import_dbapi()
    if dialect.name in ("mysql", "mariadb"):
        from queuepool.stores.sql import tidy_mysql  # noqa: F401 - imported here: its driver is optional


def open_engine(database: Database, *, shared: bool, timeout: float, create: Sequence[str]) -> Engine:
    """An engine; sends nothing yet. Producers (``shared``) have a pool of connections, a loop has one.

    ``timeout``: seconds after which a silent server counts as gone. ``create``: the statements that create a missing
    SQLite file; without them it must exist.
    """
    named = _named(database.url)
    # No reset on return: we leave no transaction open.
    pool: dict[str, Any] = {"max_overflow": -1, "pool_reset_on_return": None} if shared else {"poolclass": NullPool}
    openers: dict[str, Callable[..., Engine]] = {
        "sqlite": partial(_sqlite, migrate=database.migrate),
        "postgresql": postgresql.open_engine,
        "mysql": _mysql,
        "mariadb": _mysql,
    }
    return openers[named.get_backend_name()](named, pool, shared, timeout, create)


def _named(url: str) -> URL:
    """The URL with its driver."""
    parsed = make_url(of_one_node(url))
    if len(nodes := nodes_of(url)) > 1:
        hosts, ports = (",".join(map(str, facts)) for facts in zip(*nodes, strict=True))
        parsed = parsed.set(host="", port=None).update_query_dict({"host": hosts, "port": ports})
    # Up to 2.0, SQLAlchemy does not decode the escapes in a database's name.
    return parsed.set(drivername=DRIVERS[parsed.get_backend_name()], database=database_of(url))


def _sqlite(
    url: URL, pool: dict[str, Any], shared: bool, timeout: float, create: Sequence[str], *, migrate: str
) -> Engine:
    path = Path(url.database or "").absolute()
    opener = partial(sqlite.connect, path, durable=shared, timeout=timeout, create=create, migrate=migrate)
    engine = create_engine(url, creator=opener, isolation_level="AUTOCOMMIT", **pool)
    if shared:  # a loop checks by itself, before each verb

        @event.listens_for(engine, "checkout")
        def refuse_replaced(connection: sqlite.FileConnection, _record: Any, _proxy: Any) -> None:
            if not connection.is_current:
                connection.retire()
                raise exc.DisconnectionError  # makes the pool open the current file

    return engine


def _on_this_machine(url: URL) -> dict[str, bool]:
    """No TLS on a unix socket that asks for none: PyMySQL would read the machine's certificates at each connection."""
    asks = any(name.startswith("ssl") for name in url.query)
    return {"ssl_disabled": True} if "unix_socket" in url.query and not asks else {}


def _mysql(url: URL, pool: dict[str, Any], shared: bool, timeout: float, create: Sequence[str]) -> Engine:
    # Strict, else a queue's name that is too long would be cut silently. And none of the server's own modes: in some,
    # BEGIN starts a block, or an empty text is NULL.
    session = (
        "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
        f"innodb_lock_wait_timeout = {max(int(timeout) - shared, 1)}"
    )
    # The server gives up on a lock before we give up on the server; a producer does not wait longer for that.
    silence = timeout + (not shared)
    waits = {"connect_timeout": max(timeout, 2.0), "read_timeout": silence, "write_timeout": silence}
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        connect_args={"charset": "utf8mb4", "init_command": session, **waits, **_on_this_machine(url)},
        pool_pre_ping=shared,
        **pool,
    )

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> Any:
        from queuepool.stores.sql.tidy_mysql import Tidy  # imported here: its driver is optional

        return Tidy(*args, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            if "MariaDB" in connection.get_server_info():  # MySQL has no such limit
                cursor.execute(f"SET SESSION idle_transaction_timeout = {LATEST_COMMIT}")
            cursor.execute("SELECT @@max_allowed_packet")
            connection.most_bytes = int(cursor.fetchone()[0])

    return engine
