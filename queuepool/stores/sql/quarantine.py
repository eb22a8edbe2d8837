"""Payloads that cannot be jobs, stored in Laravel's ``failed_jobs``, where its own commands show them too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, delete, select

from queuepool.stores.set_aside import Quarantined
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.failed import Push
from queuepool.stores.sql.failed_table import NO_JOB, Failures, payload_column

_PAGE = 100


class SqlQuarantine:
    """The quarantine of one database; an entry's id is its record's uuid."""

    def __init__(self, client: Client, failures: Failures, push: Push) -> None:
        self._client = client
        self._failures = failures
        self._push = push
        self._table = failures.table

    def entries(self, queue: str) -> Iterator[Quarantined]:
        """The entries, oldest first, read page by page."""
        last = 0
        while rows := self._client.ask(lambda c, last=last: self._page(c, queue, last)):  # type: ignore[misc]
            yield from (_entry(row) for row in rows)
            last = rows[-1].id

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None) -> bool:
        """Put it at the tail of its queue, unchanged or as ``payload``; ``False`` when there is no such entry."""

        def work(connection: Connection) -> bool:
            kept = select(payload_column(connection, self._table)).where(*self._is(connection, queue, entry_id))
            row = connection.execute(kept.with_for_update()).first()
            if row:
                self._push(connection, queue, [bytes_of(row[0]) if payload is None else payload])
                connection.execute(delete(self._table).where(*self._is(connection, queue, entry_id)))
            return row is not None

        return self._client.transaction(work)

    def drop(self, queue: str, entry_id: str) -> bool:
        return self._client.ask(
            lambda c: c.execute(delete(self._table).where(*self._is(c, queue, entry_id))).rowcount == 1
        )

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
