"""One transaction on one connection; and a replaced SQLite file, in which jobs reserved from it are settled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, exc

from queuepool.errors import StoreDown
from queuepool.stores.sql import postgresql
from queuepool.stores.sql.errors import Database, translated
from queuepool.stores.sql.sqlite import FileConnection

T = TypeVar("T")


def carry_out(connection: Connection, work: Callable[[Connection], T], drop: Callable[[], object]) -> T:
    """Do all of ``work`` or nothing; ``drop`` the connection if it cannot even be rolled back."""
    connection.exec_driver_sql(_begin_of(connection))
    try:
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


def in_current_file(work: Callable[[Connection], T], connection: Connection) -> T:
    """Do ``work`` after checking the file again, now under its write lock. Raises ``StoreDown`` if it was replaced.

    So a program that replaces the file while holding that lock loses nothing.
    """
    if (file := file_of(connection)) and not file.is_current:
        raise StoreDown(f"the file {file.path} was moved or replaced meanwhile")
    return work(connection)


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
        return "BEGIN IMMEDIATE"  # else it would learn in mid-transaction that others write, too late to wait
    return postgresql.begin_lent(connection) if postgresql.is_lent(connection) else "BEGIN"


def _roll_back(connection: Connection, drop: Callable[[], object]) -> None:
    try:
        connection.exec_driver_sql("ROLLBACK")
    except exc.SQLAlchemyError:
        # Closing the connection rolls back. It must not be reused, as it would refuse every statement.
        drop()
