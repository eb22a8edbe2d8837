"""Payloads that cannot be jobs, stored in Laravel's ``failed_jobs``, where its own commands show them too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.set_aside import Quarantined, Returned
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.dropped_locks import DroppedLocks
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.failed import Push
from queuepool.stores.sql.failed_table import NO_JOB, Failures, payload_column

_PAGE = 100


class SqlQuarantine:
    """The quarantine of one database; an entry's id is its record's uuid."""

    def __init__(self, client: Client, failures: Failures, push: Push, locks: DroppedLocks) -> None:
        self._client = client
        self._failures = failures
        self._push = push
        self._locks = locks
        self._table = failures.table

    def entries(self, queue: str) -> Iterator[Quarantined]:
        """As ``stores.set_aside.QuarantineStore``, here and below."""
        last = 0
        while rows := self._client.ask(lambda c, last=last: self._page(c, queue, last)):  # type: ignore[misc]
            yield from (_entry(row) for row in rows)
            last = rows[-1].id

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        def work(connection: Connection) -> Returned:
            kept = select(payload_column(connection, self._table)).where(*self._is(connection, queue, entry_id))
            row = connection.execute(kept.with_for_update()).first()
            if row is None:
                return Returned.GONE
            if lock and not self._locks.take(connection, lock):
                return Returned.HELD
            self._push(connection, queue, [bytes_of(row[0]) if payload is None else payload])
            connection.execute(delete(self._table).where(*self._is(connection, queue, entry_id)))
            return Returned.DONE

        if lock:
            self._locks.examine()
        return self._client.transaction(work)

    def drop(self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = ()) -> bool:
        def work(connection: Connection) -> bool:
            is_dropped = connection.execute(delete(self._table).where(*self._is(connection, queue, entry_id))).rowcount
            if is_dropped and unlocks:
                self._locks.release(connection, unlocks)
            return bool(is_dropped)

        if unlocks:
            self._locks.examine()
        return self._client.transaction(work)

    def _page(self, connection: Connection, queue: str, last: int) -> list[Any]:
        table, at = self._table.c, Clock(connection.dialect).as_seconds(self._table.c.failed_at)
        shown = (table.id, table.uuid, table.queue, table.exception, at, payload_column(connection, self._table))
        found = select(*shown).where(self._failures.is_quarantined(connection, queue), table.id > last)
        return list(connection.execute(found.order_by(table.id).limit(_PAGE)))

    def _is(self, connection: Connection, queue: str, entry_id: str) -> tuple[Any, ...]:
        is_entry = self._table.c.uuid == self._failures.charsets.text(connection, "uuid", entry_id)
        return self._failures.is_quarantined(connection, queue), is_entry


def _entry(row: Any) -> Quarantined:
    _, identity, queue, exception, at, payload = row
    return Quarantined(identity, queue, exception.removeprefix(NO_JOB), float(at), bytes_of(payload))
