"""Unique locks that are in another store than the jobs: no transaction covers both, so each is handled first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from queuepool.payload.ending import Lock, Unlock


class Locks(Protocol):
    """The locks in one of Laravel's caches."""

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """Release them, and return how many were there; one that another owner holds is there, and stays."""

    def take(self, lock: Lock) -> bool:
        """Take the lock; ``False`` if it is held."""

    def held(self, names: Sequence[str]) -> list[str]:
        """Those of these locks that are held, in their order."""

    def all_keys(self) -> list[str]:
        """The keys of all unique locks that are held, whatever prefix they have; reads the whole store."""


class LocksOf:
    """Divides the locks of a job between its own store, of this ``kind``, and those that have Laravel's.

    Those elsewhere are released before the job is settled. A crash in between may let a duplicate be dispatched too
    early; in the other order it would leave the lock held. ``elsewhere``: the other stores, with the kind of each.
    """

    def __init__(self, kind: str, elsewhere: Sequence[tuple[str, Locks]] = ()) -> None:
        self._kind = kind
        self._elsewhere = elsewhere
        self._is_found = False
        #: those in the jobs' own store, which says so itself
        self.own: Locks | None = None
        #: whether there were locks to release, and none of them was anywhere
        self.missed = False

    def here(self, unlocks: Sequence[Unlock]) -> Sequence[Unlock]:
        """Those in the jobs' own store, if there are; those elsewhere are released now.

        A lock may be in each store of its kind, and in any if its kind is unknown.
        """
        self.missed, self._is_found = False, not unlocks
        for kind, locks in self._elsewhere:
            if others := [lock for lock in unlocks if lock.store in ("", kind)]:
                self._is_found |= locks.release(others) > 0
        return [lock for lock in unlocks if lock.store in ("", self._kind)]

    def held(self, names: Sequence[str]) -> list[str]:
        """Those of these locks that are held in any of the stores. Raises ``StoreError``."""
        places = [locks for locks in (self.own, *(locks for _, locks in self._elsewhere)) if locks]
        return [name for locks in places for name in locks.held(names)]

    def found(self, here: int) -> None:
        """Note how many locks there were in the jobs' own store."""
        self.missed = not self._is_found and not here

    def ended(self, answer: int) -> bool:
        """Whether a job was ended: then the answer is 1 and the number of locks that were there, else 0."""
        if answer > 0:
            self.found(answer - 1)
        return answer > 0
