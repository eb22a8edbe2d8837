"""Failures that wait in a database for another failed store: rows of ``jobs``, on a queue that no worker serves.

So they need no table of our own. Laravel's cache, which holds our other values, may be emptied at any time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select

from queuepool.stores.set_aside import PendingFailure, json_in, sound_record
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.encoding import bytes_of

#: the queue of these rows
PENDING = "queuepool:failed:pending"


def entry_of(record: Mapping[str, Any]) -> str:
    """The payload of such a row; the token makes its id unique among all failures."""
    return json.dumps({"token": secrets.token_hex(8), "record": dict(record)})


class SqlOutbox:
    """The contract is ``stores.set_aside.Outbox``; an id is the row's number and the token."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs = client.tables.jobs

    def count_pending(self) -> int:
        counted = select(func.count()).where(self._jobs.c.queue == PENDING)
        return int(self._client.ask(lambda c: c.execute(counted).scalar_one()))

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]:
        rows = (
            select(self._jobs.c.id, self._jobs.c.payload).where(self._jobs.c.queue == PENDING).order_by(self._jobs.c.id)
        )

        def read(connection: Connection) -> list[PendingFailure]:
            return [_failure(*row) for row in connection.execute(rows.offset(first).limit(count))]

        return self._client.ask(read)

    def drop_pending(self, failure: PendingFailure) -> None:
        number = int(failure.id.partition("-")[0])
        gone = delete(self._jobs).where(self._jobs.c.id == number, self._jobs.c.queue == PENDING)
        self._client.ask(lambda c: c.execute(gone))


def _failure(number: int, payload: str | bytes) -> PendingFailure:
    entry = json_in(bytes_of(payload))
    facts = entry if isinstance(entry, dict) else {}
    return PendingFailure(f"{number}-{facts.get('token', '')}", sound_record(facts.get("record")))
