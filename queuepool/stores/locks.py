"""Unique locks that are in another store than the jobs: no transaction covers both, so each is handled first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from queuepool.payload.ending import Unlock


class Locks(Protocol):
    """The locks in one of Laravel's caches."""

    def release(self, unlocks: Sequence[Unlock]) -> None:
        """Release them; one that another owner holds stays."""


class LocksOf:
    """Divides the locks of a job between its own store, of this ``kind``, and the one that has Laravel's cache.

    Those elsewhere are released before the job is settled. A crash in between may let a duplicate be dispatched too
    early; in the other order it would leave the lock held.
    """

    def __init__(self, kind: str, elsewhere: Locks | None = None) -> None:
        self._kind = kind
        self._elsewhere = elsewhere

    def here(self, unlocks: Sequence[Unlock]) -> Sequence[Unlock]:
        """Those in the jobs' own store; the others are released now. A lock whose place is unknown may be in either."""
        others = [lock for lock in unlocks if lock.store != self._kind]
        if others and self._elsewhere:
            self._elsewhere.release(others)
        return [lock for lock in unlocks if lock.store in ("", self._kind)]
