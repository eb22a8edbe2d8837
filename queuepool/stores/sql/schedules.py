"""Schedules' marks in Laravel's table ``cache_locks``; the contract is ``stores.schedules.Schedules``.

Not in ``cache``, which may be emptied at any time. The mark is in the column of a lock's owner. A digest follows the
name, since the collations of MySQL take ``Nightly`` and ``nightly`` for the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from queuepool.stores.schedules import Due, Fired, Mark, Result, sound_marks
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import SqlLocks
from queuepool.stores.sql.names import is_name

#: the last second that the column ``expiration`` holds: Laravel deletes locks that have expired
_LAST = 2**31 - 1


class SqlSchedules:
    """The schedules of one database; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: Client, table: JobsTable, locks: SqlLocks, prefix: str) -> None:
        self._client = client
        self._marks = client.tables.cache_locks
        self._table = table
        self._locks = locks
        self._start = f"{prefix}queuepool:schedule:"

    def begin(self, rules: Mapping[str, str], now: int) -> dict[str, Mark]:
        def work(connection: Connection) -> dict[str, Mark]:
            # In one order everywhere: stewards that begin at once wait for each other's rows.
            return {name: self._begun(connection, name, rules[name], now) for name in sorted(rules)}

        self._locks.examine()
        return self._client.transaction(work)

    def fire(self, due: Due) -> Fired | None:
        def work(connection: Connection) -> Fired | None:
            before = Mark.from_text(self._text(connection, due.name) or b"")
            if before is None or before.settled >= due.at:
                return before and Fired(Result.SETTLED, before)
            result = self._pushed(connection, due) if due.payload else Result.PASSED
            pushed = due.at if result is Result.PUSHED else before.pushed
            self._put(connection, due.name, before._replace(settled=due.at, pushed=pushed))
            return Fired(result, before)

        self._table.examine()
        self._locks.examine()
        return self._client.transaction(work)

    def marks(self) -> dict[str, Mark]:
        ours = select(self._marks.c.key, self._marks.c.owner).where(
            self._marks.c.key.startswith(self._start, autoescape=True)
        )
        self._locks.examine()
        rows = self._client.ask(lambda connection: connection.execute(ours).all())
        return sound_marks((key.removeprefix(self._start).rpartition("#")[0], bytes_of(owner)) for key, owner in rows)

    def forget(self, name: str) -> bool:
        self._locks.examine()
        return self._client.ask(
            lambda connection: (
                connection.execute(delete(self._marks).where(self._is_key(connection, name))).rowcount == 1
            )
        )

    def _begun(self, connection: Connection, name: str, rule: str, now: int) -> Mark:
        text = self._text(connection, name)
        before = Mark.from_text(text or b"")
        mark = before.seen(rule, now) if before else Mark(now, rule)
        if text is None:  # of two that insert it at once, one is tried again, whole
            row = {"key": self._key(name), "owner": mark.to_text(), "expiration": _LAST}
            connection.execute(insert(self._marks).values(**row))
        elif mark != before:
            self._put(connection, name, mark)
        return mark

    def _text(self, connection: Connection, name: str) -> bytes | None:
        """The mark's text, whose row is locked until the transaction ends."""
        row = select(self._marks.c.owner).where(self._is_key(connection, name)).with_for_update()
        text = connection.execute(row).scalar()
        return None if text is None else bytes_of(text)

    def _put(self, connection: Connection, name: str, mark: Mark) -> None:
        values = {"owner": mark.to_text(), "expiration": _LAST}
        connection.execute(update(self._marks).where(self._is_key(connection, name)).values(**values))

    def _pushed(self, connection: Connection, due: Due) -> Result:
        if due.lock and not self._locks.take_within(connection, due.lock):
            return Result.HELD
        self._table.push(connection, due.queue, [due.payload])
        return Result.PUSHED

    def _is_key(self, connection: Connection, name: str) -> ColumnElement[bool]:
        return is_name(connection.dialect, self._marks.c.key, self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._start}{name}#{hashlib.sha256(name.encode()).hexdigest()[:8]}"
