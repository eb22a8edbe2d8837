"""Pushes in the application's own transaction: a job's row is committed with it, or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection, Dialect, Insert, TextClause, exc, text
from sqlalchemy.dialects import registry

from queuepool.config.urls import database_of, masked
from queuepool.errors import StoreError
from queuepool.payload.lease import Lock
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.contract import NewJob
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.errors import Database, translated
from queuepool.stores.sql.queue import SqlQueue
from queuepool.stores.sql.sqlite import identity_of

T = TypeVar("T")
_ASYNCHRONOUS = "within: the connection is asynchronous: await apush(...) or adispatch(...)"
_LOCK_ELSEWHERE = (
    "within: this job's unique lock is in another store, which cannot join the transaction: use after_commit"
)
_BLOCKS = (
    "within: this connection would block the event loop: give an AsyncSession or an AsyncConnection, or call dispatch "
    "instead of adispatch, push instead of apush"
)
#: identifies the database that a connection leads to, whatever address was used to reach the server
_DATABASES = {
    "sqlite": "SELECT file FROM pragma_database_list WHERE name = 'main'",
    # With the table that the name means there: another search_path may lead to another table.
    "postgresql": (
        "SELECT concat_ws(' ', to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS'), "
        "current_database(), CAST(to_regclass(:jobs) AS oid))"
    ),
    "mysql": "SELECT concat_ws(' ', @@hostname, @@port, @@datadir, database())",
}


class Borrowing:
    """Makes queues that push in the application's transactions, ``on`` its connections to the same database."""

    def __init__(self, client: SqlClient, jobs: SqlQueue) -> None:
        self._client = client
        self.jobs = jobs
        self._own = ""
        names = client.tables.jobs.schema, client.tables.jobs.name
        self._table = ".".join(f'"{name}"' for name in names if name)

    @property
    def database(self) -> Database:
        """The queue's, as errors describe it."""
        return self._client.database

    def on(self, connection: Any) -> BorrowedQueue:
        """The queue on this connection, which is checked at the first push."""
        return BorrowedQueue(self, connection)

    def check(self, connection: Callers) -> None:
        """Raise ``ValueError`` for a connection to another database."""
        kind = _kind_of(connection.dialect.name)
        is_same = kind == _kind_of(self._client.engine.dialect.name) and (
            self._is_own_file(connection) if kind == "sqlite" else self._is_own(connection, kind)
        )
        if not is_same:
            where = masked(self._client.url)
            raise ValueError(f"within: the connection leads to a different database than the queue's, {where}")

    def _is_own_file(self, connection: Callers) -> bool:
        path = connection.execute(text(_DATABASES["sqlite"])).scalar()
        own = identity_of(database_of(self._client.url))
        return bool(path) and own is not None and identity_of(os.fsdecode(path)) == own

    def _is_own(self, connection: Callers, kind: str) -> bool:
        query = text(_DATABASES[kind])
        query = query.bindparams(jobs=self._table) if kind == "postgresql" else query
        found = _text_of(connection, query)
        if found != self._own:  # or the queue's server was restarted: ask it again
            self._own = self._client.ask_once(lambda own: _text_of(own, query))
        return found == self._own


class BorrowedQueue:
    """The queue's pushes on one of the application's connections. Raises ``StoreError`` as ``QueueStore`` does.

    Raises ``TypeError`` or ``ValueError`` for an unsuitable connection: see ``adapted`` and ``Borrowing.check``.
    """

    def __init__(self, borrowing: Borrowing, connection: Any) -> None:
        self._borrowing = borrowing
        #: the application's
        self.connection = connection
        self._is_checked = False
        self._is_asynchronous = hasattr(connection, "run_sync")
        self._is_awaited = False

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """As the contract says, but all jobs in one transaction, however many.

        The lock is held from now on, and free again if the transaction is rolled back.
        """
        if lock and lock.is_elsewhere:
            raise ValueError(_LOCK_ELSEWHERE)
        with self._connected() as connection:
            push = self._borrowing.jobs.push_within
            return not jobs or push(connection, queue, jobs, delay, lock)  # type: ignore[arg-type]

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As the contract says: all of it in one transaction."""
        with self._connected() as connection:
            self._borrowing.jobs.flows.write_within(connection, flow, members)  # type: ignore[arg-type]

    def check(self) -> None:
        """For tests: raise what a push would raise for this connection. SQLite in memory stands for any database."""
        with self._translating():
            connection = self._adapted()
            if not is_in_memory(connection):
                self._borrowing.check(connection)

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a call that pushes here, if the connection is asynchronous; else raise ``TypeError``."""
        if not self._is_asynchronous:
            raise TypeError(_BLOCKS)
        return await self.connection.run_sync(lambda _: self._awaited(call))  # type: ignore[no-any-return]

    def _awaited(self, call: Callable[[], T]) -> T:
        self._is_awaited = True
        try:
            return call()
        finally:
            self._is_awaited = False

    @contextmanager
    def _connected(self) -> Iterator[Callers]:
        with self._translating():
            connection = self._adapted()
            if not self._is_checked:
                self._borrowing.check(connection)
                self._is_checked = True
            yield connection

    def _adapted(self) -> Callers:
        if self._is_asynchronous and not self._is_awaited:
            raise TypeError(_ASYNCHRONOUS)
        return adapted(self.connection)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise translated(error, self._borrowing.database) from error
        except UnicodeError as error:  # by the driver, if its encoding is narrower than the database's
            raise StoreError(f"the connection cannot send this text: {error}") from error


def is_in_memory(connection: Callers) -> bool:
    """Whether this is an SQLite database without a file, which no other process can open."""
    return connection.dialect.name == "sqlite" and not connection.execute(text(_DATABASES["sqlite"])).scalar()


def _kind_of(dialect: str) -> str:
    return "mysql" if dialect == "mariadb" else dialect


def _text_of(connection: Callers | Connection, query: TextClause) -> str:
    found = connection.execute(query).scalar()
    return found.decode() if isinstance(found, bytes) else str(found)  # bytes of a database in SQL_ASCII


# Adapts the application's connection, from any library, to the two members of SQLAlchemy's that a push uses.
#
# A driver's connection is never put under an SQLAlchemy engine: opening that rolls back what the application did.

#: the drivers' packages that follow DB-API 2, by the kind of database
_DRIVERS = {
    "sqlite3": "sqlite", "psycopg": "postgresql", "psycopg2": "postgresql",
    "pymysql": "mysql", "MySQLdb": "mysql",
}  # fmt: skip
#: Django uses the same names
_KINDS = frozenset(_DRIVERS.values())
_TAKES = (
    "an SQLAlchemy Session or Connection, a connection of sqlite3, psycopg, psycopg2, PyMySQL or mysqlclient, or "
    "Django's"
)


class Answer(NamedTuple):
    """The first value of the first row, if there is one."""

    value: Any = None

    def scalar(self) -> Any:
        return self.value


class Callers(Protocol):
    """What a push needs of a connection; SQLAlchemy's own connections have it."""

    @property
    def dialect(self) -> Dialect:
        """The database's, by whose name the statements differ."""

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        """Carry out a statement, once for each row of parameters. Raises SQLAlchemy's exceptions."""


class DriverConnection:
    """A DB-API connection: ``open_cursor`` makes its cursors, ``error`` is the base of all that it raises."""

    def __init__(self, kind: str, open_cursor: Callable[[], Any], error: type[Exception]) -> None:
        self.dialect = _dialect_of(kind)
        self._open_cursor = open_cursor
        self._error = error

    def execute(self, statement: Any, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] = {}) -> Answer:
        """As ``Callers``."""
        # Inline: otherwise the dialects would ask for the new id.
        compiled = (statement.inline() if isinstance(statement, Insert) else statement).compile(dialect=self.dialect)
        with self._translating(), closing(self._open_cursor()) as cursor:
            if isinstance(parameters, Mapping):
                cursor.execute(compiled.string, compiled.construct_params(parameters))
                return Answer(_first_of(cursor.fetchone()) if cursor.description else None)
            cursor.executemany(compiled.string, [compiled.construct_params(row) for row in parameters])
            return Answer()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise the driver's exceptions as SQLAlchemy's, as our own connections do. Django wraps them once more."""
        try:
            yield
        except self._error as error:
            if _is_refused_unsent(error):
                raise  # as the application's own queries do; its cause is an older, unrelated error
            origin = error.__cause__ if _is_djangos(error) and error.__cause__ else error
            raise exc.DBAPIError.instance(None, None, origin, self._error) from error


def adapted(connection: Any) -> Callers:
    """The connection as a push uses it.

    Raises ``TypeError`` for any other object, ``ValueError`` for autocommit outside a transaction.
    """
    connection = _unwrapped(connection)
    if isinstance(connection, Connection):
        _refuse_autocommit(commits_at_once(connection.dialect.name, connection.connection.dbapi_connection))
        return connection
    if _is_djangos(connection) and getattr(connection, "vendor", "") in _KINDS:
        _refuse_autocommit(connection.get_autocommit())
        return DriverConnection(connection.vendor, connection.cursor, sys.modules["django.db.utils"].Error)
    driver = next((name for name in _packages_of(connection) if name in _DRIVERS), "")
    if not driver or not hasattr(connection, "commit"):
        raise TypeError(f"within takes {_TAKES}, not a {_name_of(connection)}")
    _refuse_autocommit(commits_at_once(_DRIVERS[driver], connection))
    return DriverConnection(_DRIVERS[driver], connection.cursor, sys.modules[driver].Error)


def commits_at_once(kind: str, driver: Any) -> bool:
    """Whether each statement on a driver's connection is a transaction of its own."""
    if kind == "sqlite":
        is_manual = driver.isolation_level is None and getattr(driver, "autocommit", -1) is not False
        return is_manual and not getattr(driver, "in_transaction", False)
    if hasattr(driver, "get_autocommit"):
        return bool(driver.get_autocommit()) and not getattr(driver, "server_status", 0) & 1
    status = getattr(getattr(driver, "info", None), "transaction_status", 0)
    return bool(getattr(driver, "autocommit", False)) and not status


def _unwrapped(connection: Any) -> Any:
    """The connection behind a session, a Django cursor or a pool's proxy; any other unchanged.

    The connection of an asynchronous session works only inside its ``run_sync``.
    """
    for inner in ("sync_session", "sync_connection"):
        connection = getattr(connection, inner, None) or connection
    if hasattr(connection, "get_bind") and hasattr(connection, "connection"):
        return connection.connection()
    if _is_djangos(connection) and hasattr(connection, "db"):
        return connection.db
    return getattr(connection, "driver_connection", None) or connection


def _refuse_autocommit(is_on: bool) -> None:
    if is_on:
        raise ValueError(
            "within: the connection is in autocommit, so nothing could be rolled back: begin a transaction"
        )


def _dialect_of(kind: str) -> Dialect:
    made: Dialect = registry.load(kind)(paramstyle="named" if kind == "sqlite" else "pyformat")
    return made


def _first_of(row: Any) -> Any:
    """The first column, whatever row class the application has chosen."""
    if row is None:
        return None
    return next(iter(row.values())) if isinstance(row, Mapping) else row[0]


def _packages_of(thing: object) -> list[str]:
    return [cls.__module__.partition(".")[0] for cls in type(thing).__mro__]


def _is_djangos(thing: object) -> bool:
    return "django" in _packages_of(thing)


def _is_refused_unsent(error: Exception) -> bool:
    """Whether Django refused to send the query, since the transaction can only be rolled back."""
    return _is_djangos(error) and type(error).__name__ == "TransactionManagementError"


def _name_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")
