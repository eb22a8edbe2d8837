"""Unique locks and outcomes beside the rows of ``jobs``, each in the transaction that adds or ends its job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from queuepool.payload.ending import Ending, Lock, Unlock
from queuepool.stores.locks import LocksOf
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import SqlLocks


class SqlEndings:
    """Those of one database; ``locks_of`` says which locks are in it."""

    def __init__(self, client: Client, table: JobsTable, locks: SqlLocks, locks_of: LocksOf) -> None:
        self._client = client
        self._table = table
        self._locks = locks
        self._locks_of = locks_of

    def push_unique(self, queue: str, payload: bytes, delay: float, lock: Lock) -> bool:
        """As the contract says."""

        def push(connection: Connection) -> bool:
            if not self._locks.take_within(connection, lock):
                return False
            self._table.push(connection, queue, [payload], delay)
            return True

        self._table.examine()
        self._locks.examine()
        return self._client.transaction(push)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        """As the contract says."""
        if here := self._locks_of.here(unlocks):
            self._locks.release(here)

    def following(self, ending: Ending) -> Callable[[Connection], None]:
        """What writes the ending in the transaction that ends the job; locks in another store are released now."""
        unlocks = self._locks_of.here(ending.unlocks)
        if unlocks:
            self._locks.examine()

        def follow(connection: Connection) -> None:
            self._locks.release_within(connection, unlocks)
            if ending.outcome:
                self._table.push(connection, ending.outcome.queue, [ending.outcome.payload])

        return follow
