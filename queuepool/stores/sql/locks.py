"""Laravel's locks in the table ``cache_locks``: each verb works in its caller's transaction.

Source: Illuminate/Cache/DatabaseLock.php (13.x).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, delete, insert, inspect, select, update

from queuepool.errors import StoreDenied
from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.names import is_name
from queuepool.stores.sql.tables import cache_locks


class SqlLocks:
    """The locks in one database; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._is_there = False

    def examine(self) -> None:
        """Raise ``StoreDenied`` if there is no such table: an application on Laravel 8 may have none."""
        if not self._is_there:
            self._is_there = self._client.ask(lambda c: inspect(c).has_table(cache_locks.name))
        if not self._is_there:
            raise StoreDenied("the database has no table cache_locks: run `queuepool migrate`")

    def release(self, unlocks: Sequence[Unlock]) -> None:
        """As ``stores.locks.Locks``."""
        self.examine()
        self._client.transaction(lambda connection: self.release_within(connection, unlocks))

    def release_within(self, connection: Connection, unlocks: Sequence[Unlock]) -> None:
        """Release the locks; one that another owner holds stays."""
        for lock in filter(partial(_may_be_held, connection), unlocks):
            ours = [cache_locks.c.owner == lock.owner] if lock.owner else []
            connection.execute(delete(cache_locks).where(self._is_key(connection, lock.name), *ours))

    def take_within(self, connection: Connection, lock: Lock) -> bool:
        """Take the lock; ``False`` if it is held. Of two that take it at once one is tried again, whole."""
        there = self._is_key(connection, lock.name)
        clock = Clock(connection.dialect)
        held = select(cache_locks.c.expiration > clock.down()).where(there).with_for_update()
        answer = connection.execute(held).scalar()
        if answer:
            return False
        row = {"owner": lock.owner, "expiration": clock.up(lock.seconds)}
        if answer is None:
            connection.execute(insert(cache_locks).values(key=self._prefix + lock.name, **row))
        else:
            connection.execute(update(cache_locks).where(there).values(**row))
        return True

    def _is_key(self, connection: Connection, name: str) -> ColumnElement[bool]:
        return is_name(connection.dialect, cache_locks.c.key, self._prefix + name)


def _may_be_held(connection: Connection, lock: Unlock) -> bool:
    """Whether a row may be of this lock: PostgreSQL refuses a NUL even in a query, and its job could not end."""
    return connection.dialect.name != "postgresql" or "\0" not in f"{lock.name}{lock.owner}"
