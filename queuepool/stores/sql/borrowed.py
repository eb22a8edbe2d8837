"""Pushes in a transaction of the application's own: a job's row is committed with it, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, TextClause, exc, text

from queuepool.config.urls import database_of, masked
from queuepool.errors import StoreError
from queuepool.payload.ending import Lock
from queuepool.stores.contract import NewJob
from queuepool.stores.sql.callers_connection import Callers, adapted
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.errors import Database, translated
from queuepool.stores.sql.queue import SqlQueue
from queuepool.stores.sql.sqlite import identity_of

T = TypeVar("T")
_ASYNCHRONOUS = "within: the connection is asynchronous: await apush(...) or adispatch(...)"
_LOCK_ELSEWHERE = (
    "within: the lock of this job is in another store, which takes no part in a transaction: use after_commit"
)
_BLOCKS = (
    "within: this connection blocks the event loop, in whose thread it must be used: give an AsyncSession or an "
    "AsyncConnection, or call dispatch instead of adispatch, push instead of apush"
)
#: an id of the database that a connection leads to, the same whatever the address by which the server was reached
_DATABASES = {
    "sqlite": "SELECT file FROM pragma_database_list WHERE name = 'main'",
    # With the table that the name means there: another search_path may lead to another one.
    "postgresql": (
        "SELECT concat_ws(' ', to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS'), "
        "current_database(), CAST(to_regclass(:jobs) AS oid))"
    ),
    "mysql": "SELECT concat_ws(' ', @@hostname, @@port, @@datadir, database())",
}


class Borrowing:
    """The queue's part in other transactions than its own; ``on`` a connection that leads to the same database."""

    def __init__(self, client: Client, jobs: SqlQueue) -> None:
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
        """Where to push on this connection; it is looked at with the first push."""
        return BorrowedQueue(self, connection)

    def check(self, connection: Callers) -> None:
        """Raise ``ValueError`` for a connection to another database."""
        kind = _kind_of(connection.dialect.name)
        is_same = kind == _kind_of(self._client.engine.dialect.name) and (
            self._is_own_file(connection) if kind == "sqlite" else self._is_own(connection, kind)
        )
        if not is_same:
            where = masked(self._client.url)
            raise ValueError(f"within: the connection leads to another database than the queue's, {where}")

    def _is_own_file(self, connection: Callers) -> bool:
        path = connection.execute(text(_DATABASES["sqlite"])).scalar()
        own = identity_of(database_of(self._client.url))
        return bool(path) and own is not None and identity_of(os.fsdecode(path)) == own

    def _is_own(self, connection: Callers, kind: str) -> bool:
        query = text(_DATABASES[kind])
        query = query.bindparams(jobs=self._table) if kind == "postgresql" else query
        found = _text_of(connection, query)
        if found != self._own:  # of a server that was restarted, too
            self._own = self._client.ask_once(lambda own: _text_of(own, query))
        return found == self._own


class BorrowedQueue:
    """The queue's pushes on one connection of the application's. Raises ``StoreError`` as ``QueueStore`` does.

    ``TypeError`` and ``ValueError`` for a connection that does not do: see ``adapted`` and ``Borrowing.check``.
    """

    def __init__(self, borrowing: Borrowing, connection: Any) -> None:
        self._borrowing = borrowing
        #: the application's
        self.connection = connection
        self._is_checked = False
        self._is_asynchronous = hasattr(connection, "run_sync")
        self._is_awaited = False

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """As the contract says; all in the one transaction, however many they are.

        The lock is held from now on, and free again if the transaction is rolled back.
        """
        if lock and lock.is_elsewhere:
            raise ValueError(_LOCK_ELSEWHERE)
        with self._connected() as connection:
            push = self._borrowing.jobs.push_within
            return not jobs or push(connection, queue, jobs, delay, lock)  # type: ignore[arg-type]

    def check(self) -> None:
        """For tests: raise what a push raises because of the connection. SQLite in memory stands for any database."""
        with self._translating():
            connection = self._adapted()
            if not is_in_memory(connection):
                self._borrowing.check(connection)

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a call that pushes here, on an asynchronous connection. Raises ``TypeError`` for another."""
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
        except UnicodeError as error:  # the driver's own, if the connection has a narrower encoding than the database
            raise StoreError(f"the connection cannot send this text: {error}") from error


def is_in_memory(connection: Callers) -> bool:
    """Whether this is a database of SQLite's without a file, which no other process can open."""
    return connection.dialect.name == "sqlite" and not connection.execute(text(_DATABASES["sqlite"])).scalar()


def _kind_of(dialect: str) -> str:
    return "mysql" if dialect == "mariadb" else dialect


def _text_of(connection: Callers | Connection, query: TextClause) -> str:
    found = connection.execute(query).scalar()
    return found.decode() if isinstance(found, bytes) else str(found)  # bytes of a database in SQL_ASCII
