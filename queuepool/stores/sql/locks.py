"""Laravel's locks in the table ``cache_locks``: each verb works in its caller's transaction.

Source: Illuminate/Cache/DatabaseLock.php (13.x).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, Table, case, delete, inspect, select, update

from queuepool.errors import StoreDenied
from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.locks import PREFIX, HeldLock
from queuepool.stores.sql.charsets import Charsets
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.names import is_name, is_one_of

#: locks that are read at once
_PAGE = 1000
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

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """As ``stores.locks.Locks``, here and below."""
        self.examine()
        return self._client.transaction(lambda connection: self.release_within(connection, unlocks))

    def release_within(self, connection: Connection, unlocks: Sequence[Unlock]) -> int:
        """Release the locks; one that another owner holds stays."""
        released = 0
        for lock in filter(partial(_may_be_held, connection), unlocks):
            ours = [self._table.c.owner == lock.owner] if lock.owner else []
            gone = delete(self._table).where(self._is_key(connection, lock.name), *ours)
            released += connection.execute(gone).rowcount
        return released

    def take(self, lock: Lock) -> bool:
        self.examine()
        return self._client.transaction(partial(self.take_within, lock=lock))

    def held(self) -> Iterator[HeldLock]:
        self.examine()
        last = ""
        while rows := self._client.ask(partial(self._page, after=last)):
            last = rows[-1].key
            yield from (HeldLock(*self._plain(row), seconds=float(row.left)) for row in rows)

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        def read(connection: Connection) -> dict[str, str]:
            keys = {self._key(connection, name): name for name in names}
            is_one = is_one_of(connection.dialect, self._table.c.key, list(keys))
            living = self._table.c.expiration > Clock(connection.dialect).down()
            rows = connection.execute(select(self._table.c.key, self._table.c.owner).where(is_one, living))
            return {keys[key]: bytes_of(owner).decode("utf-8", "replace") for key, owner in rows}

        self.examine()
        return self._client.ask(read) if names else {}

    def _page(self, connection: Connection, after: str) -> Sequence[Any]:
        table, now = self._table.c, Clock(connection.dialect).down()
        is_lock = table.key.startswith(self._prefix + PREFIX, autoescape=True)
        page = select(table.key, table.owner, (table.expiration - now).label("left"))
        living = page.where(is_lock, table.key > after, table.expiration > now)
        return connection.execute(living.order_by(table.key).limit(_PAGE)).all()

    def _plain(self, row: Any) -> tuple[str, str]:
        return row.key.removeprefix(self._prefix), bytes_of(row.owner).decode("utf-8", "replace")

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
