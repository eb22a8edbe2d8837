"""A connection of the application's own, of whatever library, as the two members of SQLAlchemy's that a push uses.

A driver's connection is never put under an engine of SQLAlchemy's: to open one rolls back what the application did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, Dialect, Insert, exc
from sqlalchemy.dialects import registry

#: the drivers' packages that follow DB-API 2, by the kind of database
_DRIVERS = {
    "sqlite3": "sqlite", "psycopg": "postgresql", "psycopg2": "postgresql",
    "pymysql": "mysql", "MySQLdb": "mysql",
}  # fmt: skip
#: Django names the kinds alike
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
    """What a push needs of a connection; SQLAlchemy's own has it."""

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
        # Inline: no id is to be returned, which the dialects ask for otherwise.
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
                raise  # as by the application's own queries; its cause is an older, unrelated error
            origin = error.__cause__ if _is_djangos(error) and error.__cause__ else error
            raise exc.DBAPIError.instance(None, None, origin, self._error) from error


def adapted(connection: Any) -> Callers:
    """The connection as a push uses it.

    Raises ``TypeError`` for what is no such connection, ``ValueError`` for one in autocommit outside of a transaction.
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
        raise TypeError(f"within takes {_TAKES}, and not a {_name_of(connection)}")
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
    """The connection of a session, of a cursor of Django's, or that a pool lends; others as they are.

    An asynchronous session's works inside of its ``run_sync`` alone.
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
            "within: the connection is in autocommit, so that nothing could be undone: begin a transaction"
        )


def _dialect_of(kind: str) -> Dialect:
    made: Dialect = registry.load(kind)(paramstyle="named" if kind == "sqlite" else "pyformat")
    return made


def _first_of(row: Any) -> Any:
    """The first column, whatever kind of row the application has chosen."""
    if row is None:
        return None
    return next(iter(row.values())) if isinstance(row, Mapping) else row[0]


def _packages_of(thing: object) -> list[str]:
    return [cls.__module__.partition(".")[0] for cls in type(thing).__mro__]


def _is_djangos(thing: object) -> bool:
    return "django" in _packages_of(thing)


def _is_refused_unsent(error: Exception) -> bool:
    """Whether Django refuses each query, since the transaction can only be rolled back."""
    return _is_djangos(error) and type(error).__name__ == "TransactionManagementError"


def _name_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")
