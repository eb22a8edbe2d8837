"""The one place that connects: an engine for each process, transactions, and drivers' exceptions as our errors.

Jobs reserved from an SQLite file that was replaced are settled in that file (``FormerFile``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, exc

from queuepool.config.urls import scheme_of
from queuepool.errors import StoreDown, StoreError, StoreUnfit
from queuepool.stores.sql import postgresql
from queuepool.stores.sql.ddl import new_file_of
from queuepool.stores.sql.engines import open_engine
from queuepool.stores.sql.errors import Database, has_ended_session, is_read_only, is_taken_back, translated
from queuepool.stores.sql.postgresql import LATEST_COMMIT
from queuepool.stores.sql.sqlite import FileConnection
from queuepool.stores.sql.tables import USUAL, Tables, missing

T = TypeVar("T")
#: how often a transaction that the database rolled back is tried before it counts as an outage
_TRIES = 5


class SqlClient:
    """One database; ``shared`` between threads, else one connection for one loop.

    The drivers are in autocommit: a single statement is its own transaction, and ``transaction`` begins one itself.
    ``timeout``: seconds after which a silent server counts as gone. ``create``: create a missing SQLite file, with
    Laravel's ``tables`` in it. Errors name the database as ``store``, and ``migrate`` as the command that creates its
    tables.
    """

    def __init__(
        self,
        url: str,
        *,
        shared: bool = False,
        timeout: float = 10.0,
        create: bool = False,
        store: str = "",
        tables: Tables = USUAL,
        migrate: str = "queuepool migrate",
    ) -> None:
        self.url = url
        #: as errors describe it
        self.database = Database(url, migrate, tables.job_batches.name, by_others=create)
        self.tables = tables
        self._shared = shared
        self._timeout = timeout
        self._create = create
        self._store = store
        #: this process's engine, by its pid
        self._engines: dict[int, Engine] = {}
        self._mine: Connection | None = None
        self._file: FileConnection | None = None
        self._pid = os.getpid()
        #: transactions that may have been sent but were not answered: each may still be committed
        self.unanswered = 0
        #: how often another file has replaced the open one
        self.replaced = 0
        self._former: FormerFile | None = None

    def transaction(self, work: Callable[[Connection], T], *, begins: bool = False) -> T:
        """Do all of ``work`` or nothing; retry on a conflict with others. Raises ``StoreDown`` or ``StoreError``.

        ``begins``: ``work`` itself begins the transaction, with ``begin`` or its first statement.
        """
        return self._insist(partial(self._attempt, work, begins))

    def single(self, work: Callable[[Connection], T]) -> T:
        """As ``transaction``, for ``work`` that is one statement and so a transaction by itself.

        It has one around it in a session that a pooler lends, which is set up there, and in a file, which may be
        replaced before it is locked.
        """
        return self._insist(partial(self._alone, work))

    def ask(self, work: Callable[[Connection], T]) -> T:
        """Run statements that need no transaction around them. Raises ``StoreDown`` or ``StoreError``.

        Retries on a conflict with others, which even a single statement can have if the database's default isolation is
        serializable.
        """
        return self._insist(partial(self._carry_out, work))

    def ask_once(self, work: Callable[[Connection], T]) -> T:
        """As ``ask``, on a connection that is closed at once: none may stay open to a database to be dropped."""
        about: dict[str, Any] = {"store": self._store, "tables": self.tables, "migrate": self.database.migrate}
        with closing(SqlClient(self.url, timeout=self._timeout, **about)) as own:
            return own.ask(work)

    def examine(self) -> None:
        """Raise ``StoreUnfit`` if there are no transactions, as with some poolers, or a table is missing."""
        if scheme_of(self.url) == "postgresql":
            self.transaction(lambda _: None)
        if table := self.ask(partial(missing, tables=self.tables)):
            raise StoreUnfit(self.database.lacks(table))

    def interruptible(self, work: Callable[[Connection], T]) -> T:
        """As ``ask``, but a signal handler may raise out of it, in mid-statement; the connection is then dropped."""
        try:
            return self.ask(work)
        except StoreError:
            raise
        except BaseException:
            self.disconnect()
            raise

    @property
    def commits_late(self) -> float:
        """Seconds after which the server has certainly ended a transaction whose client is silent."""
        return 0.0 if self.engine.dialect.name == "sqlite" else LATEST_COMMIT + 0.5

    @property
    def former(self) -> FormerFile | None:
        """The SQLite file that was replaced while open, as long as we may hold jobs from it."""
        return self._former if self._former and self._former.is_open else None

    def forget_former(self, unused_for: float = 0.0) -> None:
        """Close the former file, if no job was settled in it for ``unused_for`` seconds."""
        if self._former and self._former.unused_for >= unused_for:
            self._former.close()
            self._former = None

    @property
    def engine(self) -> Engine:
        """This process's own engine: one that was opened before a fork is the parent's."""
        if self._pid != (pid := os.getpid()):
            for parents in self._engines.values():
                parents.dispose(close=False)
            self._mine, self._former, self._engines, self._pid = None, None, {}, pid
        return self._engines.get(pid) or self._open(pid)

    def _open(self, pid: int) -> Engine:
        create = list(new_file_of(self.tables)) if self._create else []
        opened = open_engine(self.database, shared=self._shared, timeout=self._timeout, create=create)
        return self._engines.setdefault(pid, opened)  # threads that get here together all use the first

    def disconnect(self) -> None:
        """Drop the connection, whatever state it is in; the next verb opens another."""
        mine, self._mine = self._mine, None
        if mine is not None:
            with suppress(exc.SQLAlchemyError):
                mine.invalidate()
                mine.close()

    def close(self) -> None:
        """Close everything; the next verb would open it again."""
        self.forget_former()
        self.disconnect()
        self._leave_server()

    def _leave_server(self) -> None:
        if engine := self._engines.pop(os.getpid(), None):
            engine.dispose()

    def _insist(self, attempt: Callable[[], T]) -> T:
        with self._translating():
            for _ in range(_TRIES - 1):
                try:
                    return attempt()
                except exc.DBAPIError as error:
                    if not is_taken_back(error):
                        raise
                    if has_ended_session(error):
                        self.disconnect()
            return attempt()

    def _carry_out(self, work: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            return work(connection)

    def _alone(self, work: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            if connection.dialect.name != "sqlite" and not postgresql.is_lent(connection):
                return work(connection)
            return carry_out(connection, work, self.disconnect)

    def _attempt(self, work: Callable[[Connection], T], begins: bool) -> T:
        with self._connected() as connection:
            return carry_out(connection, work, self.disconnect, begins)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if self._shared:
            with self._lent(self.engine) as connection:
                yield connection
            return
        engine = self.engine
        if self._mine is None:
            self._mine = engine.connect()
            self._file = file_of(self._mine)
        elif self._file and not self._file.is_current:
            self._leave(self._mine, self._file)
        yield self._mine

    @contextmanager
    def _lent(self, engine: Engine) -> Iterator[Connection]:
        pool = engine.pool
        try:
            with engine.connect() as connection:
                try:
                    yield connection
                except BaseException:
                    # It may be in the middle of a statement or transaction, so it must not go back to the pool.
                    connection.invalidate()
                    raise
        finally:
            if self._engines.get(self._pid) is not engine:  # another thread has closed it: this came back too late
                pool.dispose()

    def _leave(self, connection: Connection, file: FileConnection) -> None:
        """Keep the connection as the former one and raise ``StoreDown``: the next verb opens another database."""
        former = former_of(connection, file, self.database.migrate)
        self.forget_former()
        self._former, self._mine, self.replaced = former, None, self.replaced + 1
        raise StoreDown(f"the file {file.path} was replaced; opening the new one")

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            found = translated(error, self.database)
            if isinstance(found, StoreDown):
                self.unanswered += 1
                self.disconnect()
                if is_read_only(error):  # as all sessions there are
                    self._leave_server()
            raise type(found)(str(found), self._store) from error
        except UnicodeError as error:  # raised by the driver itself, before sending or after receiving
            raise StoreError(f"a text cannot be exchanged with the database: {error}", self._store) from error


def begin(connection: Connection) -> None:
    """Begin a transaction. Raises ``StoreDown`` if its SQLite file was replaced before it was locked.

    So a program that replaces the file while it has that lock loses nothing.
    """
    connection.exec_driver_sql(_begin_of(connection))
    if (file := file_of(connection)) and not (file.is_retired or file.is_current):
        raise StoreDown(f"the file {file.path} was moved or replaced meanwhile")


def carry_out(
    connection: Connection, work: Callable[[Connection], T], drop: Callable[[], object], begins: bool = False
) -> T:
    """Do all of ``work`` or nothing; ``drop`` the connection if it cannot even be rolled back."""
    try:
        if not begins:
            begin(connection)
        answer = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        _roll_back(connection, drop)
        raise
    return answer


def file_of(connection: Connection) -> FileConnection | None:
    """The connection's SQLite file, if it has one."""
    driver = connection.connection.driver_connection
    return driver if isinstance(driver, FileConnection) else None


class FormerFile:
    """A file that has lost its name, used through the connection that is still open.

    Its jobs are settled in it, wherever it was moved. It is never opened again, since its path leads to another file.
    """

    def __init__(self, connection: Connection, file: FileConnection) -> None:
        self._connection = connection
        self._file = file
        self._used = time.monotonic()
        self.is_open = True
        file.retire()

    @property
    def unused_for(self) -> float:
        """Seconds since a job was last settled in it."""
        return time.monotonic() - self._used

    def transaction(self, work: Callable[[Connection], T]) -> T:
        """As ``SqlClient.transaction``, without a retry. Raises ``StoreError``."""
        try:
            return carry_out(self._connection, work, self.close)
        except exc.SQLAlchemyError as error:
            raise translated(error, Database(f"sqlite:///{quote(str(self._file.path))}")) from error

    def was_of_use(self) -> None:
        """Note that a job was settled in it."""
        self._used = time.monotonic()

    def close(self) -> None:
        """Complete the file and close the connection."""
        self.is_open = False
        self._file.complete()
        with suppress(exc.SQLAlchemyError):
            self._connection.invalidate()
            self._connection.close()


def former_of(connection: Connection, file: FileConnection, migrate: str) -> FormerFile:
    """The former file. Raises ``StoreDown`` while no other file has taken its place, as it may come back."""
    if not file.path.exists():
        raise StoreDown(f"there is no file {file.path}: put it back, or create it with `{migrate}`")
    return FormerFile(connection, file)


def _begin_of(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        return "BEGIN IMMEDIATE"  # else it would find in mid-transaction that others write, too late to wait
    return postgresql.begin_lent(connection) if postgresql.is_lent(connection) else "BEGIN"


def _roll_back(connection: Connection, drop: Callable[[], object]) -> None:
    try:
        connection.exec_driver_sql("ROLLBACK")
    except exc.SQLAlchemyError:
        # Closing the connection rolls back. It must not be reused, as it would refuse every statement.
        drop()
