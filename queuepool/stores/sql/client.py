"""The one place that connects: an engine for each process, transactions, and the drivers' exceptions made ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Engine, exc

from queuepool.config_urls import scheme_of
from queuepool.errors import StoreDown, StoreError
from queuepool.stores.sql.engines import begin_of, open_engine
from queuepool.stores.sql.troubles import is_taken_back, translated

T = TypeVar("T")
#: how often a transaction that the database took back is tried before it counts as an outage
_TRIES = 5


class Client:
    """One database; ``shared`` between threads, else one connection for one loop.

    The drivers are in autocommit: a statement alone is its own transaction, and ``transaction`` begins one by itself.
    ``patience``: seconds after which a silent server counts as gone. ``create``: an SQLite file that is missing is
    made, with Laravel's tables in it.
    """

    def __init__(self, url: str, *, shared: bool = False, patience: float = 10.0, create: bool = False) -> None:
        self.url = url
        self._shared = shared
        self._patience = patience
        self._create = create
        self._engine: Engine | None = None
        self._mine: Connection | None = None
        self._pid = 0

    def transaction(self, work: Callable[[Connection], T]) -> T:
        """All of ``work`` or nothing, and again if others were in its way. Raises ``StoreDown`` or ``StoreError``."""
        return self._insist(partial(self._attempt, work))

    def ask(self, work: Callable[[Connection], T]) -> T:
        """Carry out statements that need no transaction around them. Raises ``StoreDown`` or ``StoreError``.

        Again if others were in its way, which a statement alone meets where the database's default is serializable.
        """
        return self._insist(partial(self._carry_out, work))

    def examine(self) -> None:
        """Raises ``StoreUnfit`` when it has no transactions, as a pooler may."""
        if scheme_of(self.url) == "postgresql":
            self.transaction(lambda _: None)

    def interruptible(self, work: Callable[[Connection], T]) -> T:
        """``ask`` for what a signal handler may raise out of: the connection may be anywhere in a statement then."""
        try:
            return self.ask(work)
        except StoreError:
            raise
        except BaseException:
            self.disconnect()
            raise

    @property
    def engine(self) -> Engine:
        """This process's own: what was opened before a fork is the parent's."""
        if self._engine is None or self._pid != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._mine, self._pid = None, os.getpid()
            self._engine = open_engine(self.url, shared=self._shared, patience=self._patience, create=self._create)
        return self._engine

    def disconnect(self) -> None:
        """Drop the connection, whatever state it is in; the next verb opens another."""
        mine, self._mine = self._mine, None
        if mine is not None:
            with suppress(exc.SQLAlchemyError):
                mine.invalidate()
                mine.close()

    def close(self) -> None:
        """Give everything back; the next verb would open it again."""
        self.disconnect()
        if self._engine is not None and self._pid == os.getpid():
            self._engine.dispose()
        self._engine = None

    def _insist(self, attempt: Callable[[], T]) -> T:
        with self._translating():
            for _ in range(_TRIES - 1):
                try:
                    return attempt()
                except exc.DBAPIError as error:
                    if not is_taken_back(error):
                        raise
            return attempt()

    def _carry_out(self, work: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            return work(connection)

    def _attempt(self, work: Callable[[Connection], T]) -> T:
        with self._connected() as connection:
            connection.exec_driver_sql(begin_of(connection))
            try:
                answer = work(connection)
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            return answer

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql("ROLLBACK")
        except exc.SQLAlchemyError:
            # It is rolled back by the end of the connection, which must not be met again: it would refuse everything.
            self.disconnect()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        if self._shared:
            with self.engine.connect() as connection:
                try:
                    yield connection
                except BaseException:
                    # It may be anywhere in a statement or a transaction: nobody must find it in the pool.
                    connection.invalidate()
                    raise
            return
        engine = self.engine
        if self._mine is None:
            self._mine = engine.connect()
        yield self._mine

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except exc.SQLAlchemyError as error:
            found = translated(error)
            if isinstance(found, StoreDown):
                self.disconnect()
            raise found from error
