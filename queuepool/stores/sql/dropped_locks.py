"""The unique locks of jobs that are dropped, or put back on their queue, in the transaction that does so."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Table, false, func, or_

from queuepool.errors import StoreDenied
from queuepool.payload.ending import Unlock
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.sql.locks import SqlLocks


class DroppedLocks:
    """Those of one database; ``locks_of`` says which of them are in it, and releases the others at once."""

    def __init__(self, locks: SqlLocks, locks_of: LocksOf) -> None:
        self._locks = locks
        self._locks_of = locks_of
        self.examine = locks.examine
        self.take = locks.take_within

    def usable(self, finder: Finder) -> Finder:
        """The finder; one that finds nothing where there is no table of locks, as before Laravel 8."""
        if not finder.marks:
            return finder
        try:
            self.examine()
        except StoreDenied:
            return NO_LOCKS
        return finder

    def release(self, connection: Connection, unlocks: Sequence[Unlock]) -> None:
        """Release these locks; one that another owner holds stays."""
        self._locks.release_within(connection, self._locks_of.here(unlocks))


def may_hold(table: Table, finder: Finder) -> ColumnElement[bool]:
    """Whether a row's payload may hold a lock, by a glance at it."""
    payload = func.coalesce(table.c.payload, "")
    marks = [payload.contains(mark.decode(), autoescape=True) for mark in finder.marks]
    return or_(*marks) if marks else false()
