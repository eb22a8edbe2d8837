"""Unique locks, outcomes and states beside the rows of ``jobs``, in the transaction that adds or ends a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from queuepool.payload.ending import Ending, Lock, Unlock
from queuepool.stores.locks import LocksOf
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import SqlLocks
from queuepool.stores.sql.states import SqlStates


class SqlEndings:
    """Those of one database; ``locks_of`` says which locks are in it."""

    def __init__(self, table: JobsTable, locks: SqlLocks, locks_of: LocksOf, states: SqlStates) -> None:
        self._table = table
        self._locks = locks
        self.locks_of = locks_of
        locks_of.own = locks
        self._states = states

    def push_unique(self, queue: str, payload: bytes, delay: float, lock: Lock) -> bool:
        """As the contract says."""
        return self._states.push(queue, [payload], delay, (), lock)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        """As the contract says."""
        here = self.locks_of.here(unlocks)
        self.locks_of.found(self._locks.release(here) if here else 0)

    def following(self, ending: Ending) -> Callable[[Connection], None]:
        """What writes the ending in the transaction that ends the job; locks in another store are released now."""
        unlocks = self.locks_of.here(ending.unlocks)
        if unlocks:
            self._locks.examine()

        def follow(connection: Connection) -> None:
            self.locks_of.found(self._locks.release_within(connection, unlocks))
            if ending.outcome:
                self._table.push(connection, ending.outcome.queue, [ending.outcome.payload])
            if ending.state:
                self._states.write_within(connection, ending.state)

        return follow
