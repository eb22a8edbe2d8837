"""Laravel's table ``cache_locks``: its own locks, the keys of alerts, and the marks of schedules.

Marks are not in ``cache``, which may be emptied at any time; a mark is in the column of a lock's owner. Our keys end in
a digest: MySQL's collations treat ``Nightly`` and ``nightly`` as equal, and the column's length is limited.
Source: Illuminate/Cache/DatabaseLock.php (13.x).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Table,
    case,
    delete,
    false,
    func,
    insert,
    inspect,
    or_,
    select,
    update,
)

from queuepool.errors import StoreDenied
from queuepool.payload.lease import Lock, Unlock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.locks import NO_LOCKS, Finder, HeldLock
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.texts import Charsets, is_name, is_one_of
from queuepool.stores.values import AlertClaim, Due, Fired, Mark, Result, sound_marks

#: locks that are read at once
_PAGE = 1000
#: the state of a lock in a query: as it is to be, held by another owner, or to be written: expired, or with another end
_OURS, _HELD, _FREE = 1, 2, 3
#: the last second that the column ``expiration`` holds: Laravel deletes locks that have expired
LAST_SECOND = 2**31 - 1
#: most characters of an alert in its key, before the digest
_MAX_ALERT = 120


class SqlLocks:
    """What has an owner in one database. ``prefix`` is that of Laravel's cache, ``lock_prefix`` that of its locks.

    The verbs that end in ``within`` work in their caller's transaction.
    """

    def __init__(self, client: SqlClient, table: JobsTable, prefix: str, lock_prefix: str) -> None:
        self._client = client
        self._table = table
        self._prefix = prefix
        self._lock_prefix = lock_prefix
        self._marks_start = f"{prefix}queuepool:schedule:"
        self._owned = client.tables.cache_locks
        self._owned_charsets = Charsets(self._owned)
        self._is_there = False

    def examine(self) -> None:
        """Raise ``StoreDenied`` if there is no such table: an application on Laravel 8 may have none."""
        if not self._is_there:
            self._is_there = self._client.ask(
                lambda c: inspect(c).has_table(self._owned.name, schema=self._owned.schema)
            )
        if not self._is_there:
            raise StoreDenied(self._client.database.lacks(self._owned.name))

    # Laravel's unique locks

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """As ``stores.locks.Locks``, here and below."""
        self.examine()
        return self._client.transaction(lambda connection: self.release_within(connection, unlocks))

    def release_within(self, connection: Connection, unlocks: Sequence[Unlock]) -> int:
        """As ``release``, in the caller's transaction."""
        return sum(self._release(connection, lock) for lock in filter(partial(_may_be_held, connection), unlocks))

    def _release(self, connection: Connection, lock: Unlock) -> bool:
        """Release the lock if it is this owner's; returns whether there was one."""
        there = self._is_key(connection, self._key(connection, lock.name))
        ours = [self._owned.c.owner == lock.owner] if lock.owner else []
        if connection.execute(delete(self._owned).where(there, *ours)).rowcount:
            return True
        return bool(ours) and connection.execute(select(self._owned.c.owner).where(there)).first() is not None

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
            is_one = is_one_of(connection.dialect, self._owned.c.key, list(keys))
            rows = connection.execute(
                select(self._owned.c.key, self._owned.c.owner).where(is_one, self._lasts(connection))
            )
            return {keys[key]: bytes_of(owner).decode("utf-8", "replace") for key, owner in rows}

        self.examine()
        return self._client.ask(read) if names else {}

    def all_keys(self) -> list[str]:
        def read(connection: Connection) -> list[str]:
            is_lock = self._owned.c.key.contains(PREFIX, autoescape=True)
            return list(connection.execute(select(self._owned.c.key).where(is_lock, self._lasts(connection))).scalars())

        self.examine()
        return self._client.ask(read)

    def usable(self, finder: Finder) -> Finder:
        """The finder, or one that finds no locks if there is no table of them, as before Laravel 8."""
        if not finder.marks:
            return finder
        try:
            self.examine()
        except StoreDenied:
            return finder._replace(marks=(), locks_of=NO_LOCKS.locks_of)
        return finder

    def _page(self, connection: Connection, after: str) -> Sequence[Any]:
        table, now = self._owned.c, Clock(connection.dialect).down()
        is_lock = table.key.startswith(self._lock_prefix + PREFIX, autoescape=True)
        page = select(table.key, table.owner, (table.expiration - now).label("left"))
        living = page.where(is_lock, table.key > after, table.expiration > now)
        return connection.execute(living.order_by(table.key).limit(_PAGE)).all()

    def _plain(self, row: Any) -> tuple[str, str]:
        return row.key.removeprefix(self._lock_prefix), bytes_of(row.owner).decode("utf-8", "replace")

    def take_within(self, connection: Connection, lock: Lock) -> bool:
        """Take the lock; ``False`` if it is held. Waits for another transaction that is about to take it."""
        return self._take(connection, self._key(connection, lock.name), lock.owner, lock.seconds)

    def _take(self, connection: Connection, key: str, owner: str, seconds: float) -> bool:
        """Give the key to this owner for these seconds from now, unless another holds it.

        No statement fails if it is held: in PostgreSQL that would abort the transaction, perhaps the application's.
        """
        there = self._is_key(connection, key)
        clock = Clock(connection.dialect)
        row = {"owner": owner, "expiration": clock.up(seconds)}
        is_ours = self._owned.c.owner == owner
        is_so = is_ours & (self._owned.c.expiration == row["expiration"])
        state = case((is_so, _OURS), (is_ours, _FREE), (self._owned.c.expiration > clock.down(), _HELD), else_=_FREE)
        # Twice: one may be released in between.
        for _ in range(2):
            connection.execute(unless_there(self._owned, connection.dialect.name, {"key": key, **row}))
            # The row as it is now, even where others show what was committed before the transaction began.
            found = connection.execute(select(state).where(there).with_for_update()).scalar()
            if found == _FREE:  # and locked by this transaction
                connection.execute(update(self._owned).where(there).values(**row))
            if found is not None:
                return bool(found != _HELD)
        return False

    def _key(self, connection: Connection, name: str) -> str:
        return self._owned_charsets.text(connection, "key", self._lock_prefix + name)

    def _is_key(self, connection: Connection, key: str) -> ColumnElement[bool]:
        return is_name(connection.dialect, self._owned.c.key, key)

    def _lasts(self, connection: Connection) -> ColumnElement[bool]:
        """Whether a row has not expired."""
        return self._owned.c.expiration > Clock(connection.dialect).down()

    # Alerts' keys

    def claim_alert(self, alert: str, owner: str, seconds: float) -> AlertClaim:
        def work(connection: Connection) -> AlertClaim:
            key = self._alert(connection, alert)
            row = select(self._owned.c.owner).where(self._is_key(connection, key), self._lasts(connection))
            holder = connection.execute(row.with_for_update()).scalar()
            if holder is None:
                return AlertClaim.TAKEN if self._take(connection, key, owner, seconds) else AlertClaim.OTHERS
            return AlertClaim.OURS if bytes_of(holder).decode("utf-8", "replace") == owner else AlertClaim.OTHERS

        self.examine()
        return self._client.transaction(work)

    def release_alert(self, alert: str, owner: str) -> bool:
        def work(connection: Connection) -> bool:
            is_key = self._is_key(connection, self._alert(connection, alert))
            gone = delete(self._owned).where(is_key, self._lasts(connection), self._owned.c.owner == owner)
            return connection.execute(gone).rowcount == 1

        self.examine()
        return self._client.ask(work)

    def _alert(self, connection: Connection, alert: str) -> str:
        name = f"{self._prefix}queuepool:alert:{alert[:_MAX_ALERT]}#{_digest(alert, 16)}"
        return self._owned_charsets.text(connection, "key", name)

    # Schedules' marks

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        def work(connection: Connection) -> dict[str, Mark]:
            # In the same order everywhere: stewards that begin together wait for each other's rows.
            return {name: self._begun(connection, name, rules[name], now) for name in sorted(rules)}

        self.examine()
        return self._client.transaction(work)

    def fire(self, due: Due) -> Fired | None:
        def work(connection: Connection) -> Fired | None:
            before = Mark.from_text(self._mark_in(connection, due.name) or b"")
            if before is None or before.settled >= due.at:
                return before and Fired(Result.SETTLED, before)
            result = self._pushed(connection, due) if due.payload else Result.PASSED
            pushed = due.at if result is Result.PUSHED else before.pushed
            self._put_mark(connection, due.name, before._replace(settled=due.at, pushed=pushed))
            return Fired(result, before)

        self._table.examine()
        self.examine()
        return self._client.transaction(work)

    def marks(self) -> dict[str, Mark]:
        ours = self._owned.c.key.startswith(self._marks_start, autoescape=True)
        rows = select(self._owned.c.key, self._owned.c.owner).where(ours)
        self.examine()
        found = self._client.ask(lambda connection: connection.execute(rows).all())
        names = ((key.removeprefix(self._marks_start).rpartition("#")[0], owner) for key, owner in found)
        return sound_marks((name, bytes_of(owner)) for name, owner in names)

    def forget(self, name: str) -> bool:
        def work(connection: Connection) -> bool:
            return connection.execute(delete(self._owned).where(self._is_mark(connection, name))).rowcount == 1

        self.examine()
        return self._client.ask(work)

    def _begun(self, connection: Connection, name: str, rule: str, now: int) -> Mark:
        text = self._mark_in(connection, name)
        before = Mark.from_text(text or b"")
        mark = before.seen(rule, now) if before else Mark(now, rule)
        if text is None:  # of two transactions that insert it at once, one is retried as a whole
            row = {"key": self._mark(name), "owner": mark.to_text(), "expiration": LAST_SECOND}
            connection.execute(insert(self._owned).values(**row))
        elif mark != before:
            self._put_mark(connection, name, mark)
        return mark

    def _mark_in(self, connection: Connection, name: str) -> bytes | None:
        """The mark's text; its row is locked until the transaction ends."""
        row = select(self._owned.c.owner).where(self._is_mark(connection, name)).with_for_update()
        text = connection.execute(row).scalar()
        return None if text is None else bytes_of(text)

    def _put_mark(self, connection: Connection, name: str, mark: Mark) -> None:
        values = {"owner": mark.to_text(), "expiration": LAST_SECOND}
        connection.execute(update(self._owned).where(self._is_mark(connection, name)).values(**values))

    def _pushed(self, connection: Connection, due: Due) -> Result:
        if due.lock and not self.take_within(connection, due.lock):
            return Result.HELD
        self._table.push(connection, due.queue, [due.payload])
        return Result.PUSHED

    def _is_mark(self, connection: Connection, name: str) -> ColumnElement[bool]:
        return self._is_key(connection, self._mark(name))

    def _mark(self, name: str) -> str:
        return f"{self._marks_start}{name}#{_digest(name, 8)}"


def may_hold(table: Table, finder: Finder) -> ColumnElement[bool]:
    """Whether a row's payload may hold a lock; a quick test."""
    return marked(table, finder.marks)


def marked(table: Table, marks: Sequence[bytes]) -> ColumnElement[bool]:
    """Whether a row's payload has one of these marks."""
    payload = func.coalesce(table.c.payload, "")
    found = [payload.contains(mark.decode(), autoescape=True) for mark in marks]
    return or_(*found) if found else false()


def _may_be_held(connection: Connection, lock: Unlock) -> bool:
    """Whether a row may hold this lock: PostgreSQL refuses NUL even in a query, and the job could not end."""
    return connection.dialect.name != "postgresql" or "\0" not in f"{lock.name}{lock.owner}"


def unless_there(table: Table, database: str, row: dict[str, Any]) -> Insert:
    """Adds the row, unless there is one with its key, which stays unchanged."""
    # Imported here: a process with one database would spend 0.1 s on the others' dialects.
    if database == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table).values(row).on_conflict_do_nothing()
    if database == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table).values(row).on_conflict_do_nothing()
    from sqlalchemy.dialects import mysql

    # Not IGNORE, which would also cut a name that is too long.
    return mysql.insert(table).values(row).on_duplicate_key_update(key=table.c.key)


def _digest(name: str, most: int) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:most]
