"""Unique locks, outcomes and states beside the rows of ``jobs``, in the transaction that adds or ends a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection

from queuepool.payload.ending import Ending, Lock, Unlock
from queuepool.stores.contract import NewJob
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

    def examine(self, lock: Lock | None) -> None:
        """Look at the tables of a push: before its transaction, see ``JobsTable.examine``."""
        self._table.examine()
        if lock:
            self._locks.examine()

    def push(self, connection: Connection, queue: str, jobs: Sequence[NewJob], delay: float, lock: Lock | None) -> bool:
        """As the contract says, in the caller's transaction."""
        if lock and not self._locks.take_within(connection, lock):
            return False
        self._table.push(connection, queue, [job.payload for job in jobs], delay)
        self._states.add(connection, [job.state for job in jobs if job.state])
        return True

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
