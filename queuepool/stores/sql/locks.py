"""Laravel's locks in the table ``cache_locks``: each verb works in its caller's transaction.

Source: Illuminate/Cache/DatabaseLock.php (13.x).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, Table, case, delete, inspect, select, update

from queuepool.errors import StoreDenied
from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.sql.charsets import Charsets
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.names import is_name

#: the state of a lock in a query; null: its time is over
_OURS, _HELD = 1, 2


class SqlLocks:
    """The locks in one database; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._table = client.tables.cache_locks
        self._charsets = Charsets(self._table)
        self._is_there = False

    def examine(self) -> None:
        """Raise ``StoreDenied`` if there is no such table: an application on Laravel 8 may have none."""
        if not self._is_there:
            self._is_there = self._client.ask(
                lambda c: inspect(c).has_table(self._table.name, schema=self._table.schema)
            )
        if not self._is_there:
            raise StoreDenied(self._client.database.lacks(self._table.name))

    def release(self, unlocks: Sequence[Unlock]) -> None:
        """As ``stores.locks.Locks``."""
        self.examine()
        self._client.transaction(lambda connection: self.release_within(connection, unlocks))

    def release_within(self, connection: Connection, unlocks: Sequence[Unlock]) -> None:
        """Release the locks; one that another owner holds stays."""
        for lock in filter(partial(_may_be_held, connection), unlocks):
            ours = [self._table.c.owner == lock.owner] if lock.owner else []
            connection.execute(delete(self._table).where(self._is_key(connection, lock.name), *ours))

    def take_within(self, connection: Connection, lock: Lock) -> bool:
        """Take the lock; ``False`` if it is held. Waits for another transaction that is about to take it.

        No statement fails if it is held: in PostgreSQL that would end the transaction, which may be the application's.
        """
        there = self._is_key(connection, lock.name)
        clock = Clock(connection.dialect)
        row = {"owner": lock.owner, "expiration": clock.up(lock.seconds)}
        state = case((self._table.c.owner == lock.owner, _OURS), (self._table.c.expiration > clock.down(), _HELD))
        # Twice: a lock whose time is over is taken over first; one may be released in between.
        for _ in range(2):
            connection.execute(
                _unless_there(self._table, connection.dialect.name, {"key": self._key(connection, lock.name), **row})
            )
            # The row as it is now, even where others show what was committed before the transaction began.
            found = connection.execute(select(state).where(there).with_for_update()).scalar()
            if found is not None:
                return bool(found == _OURS)
            connection.execute(update(self._table).where(there).values(**row))
        return False

    def _is_key(self, connection: Connection, name: str) -> ColumnElement[bool]:
        return is_name(connection.dialect, self._table.c.key, self._key(connection, name))

    def _key(self, connection: Connection, name: str) -> str:
        return self._charsets.text(connection, "key", self._prefix + name)


def _may_be_held(connection: Connection, lock: Unlock) -> bool:
    """Whether a row may be of this lock: PostgreSQL refuses a NUL even in a query, and its job could not end."""
    return connection.dialect.name != "postgresql" or "\0" not in f"{lock.name}{lock.owner}"


def _unless_there(table: Table, database: str, row: dict[str, Any]) -> Insert:
    """Adds the row, unless there is one with its key, which stays as it is."""
    # Imported here: a process of one database would spend 0.1 s on the others' dialects.
    if database == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table).values(row).on_conflict_do_nothing()
    if database == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table).values(row).on_conflict_do_nothing()
    from sqlalchemy.dialects import mysql

    # Not IGNORE, which would also cut a name that is too long.
    return mysql.insert(table).values(row).on_duplicate_key_update(owner=table.c.owner)
