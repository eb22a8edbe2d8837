"""Pushes tracked jobs to a database; the contract is ``stores.states.JobStates``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert

from queuepool.payload.ending import Lock, StateRecord
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.values import SqlValues, ends

#: most jobs that one transaction adds
_ADDED = 1000


class SqlStates:
    """Pushes to one database."""

    def __init__(self, client: Client, table: JobsTable, values: SqlValues) -> None:
        self._client = client
        self._cache = client.tables.cache
        self._table = table
        self._locks = values
        self._key = values.state_key

    def push(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        self._table.examine()
        if lock:
            self._locks.examine()
        batches = (slice(first, first + _ADDED) for first in range(0, len(payloads), _ADDED))
        return all(self._push(queue, payloads[part], delay, states[part], lock) for part in batches)

    def _push(
        self, queue: str, payloads: Sequence[bytes], delay: float, states: Sequence[StateRecord], lock: Lock | None
    ) -> bool:
        return self._client.transaction(lambda c: self.push_within(c, queue, payloads, delay, states, lock))

    def push_within(
        self,
        connection: Connection,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None,
    ) -> bool:
        """As ``push``, in the caller's transaction."""
        if lock and not self._locks.take_within(connection, lock):
            return False
        self._table.push(connection, queue, payloads, delay)
        self._add(connection, states)
        return True

    def _add(self, connection: Connection, states: Sequence[StateRecord]) -> None:
        """Write the first states of new jobs, which are kept equally long."""
        rows = [{"name": self._key(connection, state.job_id), "text": state.text.decode()} for state in states]
        if rows:
            words: dict[str, Any] = {"key": bindparam("name"), "value": bindparam("text")}
            connection.execute(insert(self._cache).values(**words, **ends(connection, states[0].seconds)), rows)
