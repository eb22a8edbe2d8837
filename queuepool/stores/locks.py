"""Unique locks: which jobs that are dropped hold one, and those that are in another store than the jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from queuepool.payload.ending import Lock, Unlock

#: how the names of all unique locks begin
PREFIX = "laravel_unique_job:"


class HeldLock(NamedTuple):
    """A unique lock that is held; ``seconds`` until it ends by itself, ``None`` = it never does."""

    name: str
    owner: str
    seconds: float | None


class Locks(Protocol):
    """The locks in one of Laravel's caches."""

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """Release them, and return how many were held; one that another owner holds stays."""

    def take(self, lock: Lock) -> bool:
        """Take the lock, or keep it if this owner has it; ``False`` if another has it."""

    def held(self) -> Iterator[HeldLock]:
        """The unique locks that are held, in any order, read page by page."""

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        """The owners of those of these locks that are held, by name."""


class Finder(NamedTuple):
    """How the unique locks of jobs that are dropped are found."""

    #: one of these is in the bytes of each job that may hold a lock
    marks: tuple[bytes, ...]
    #: the locks that the job with these bytes holds
    locks_of: Callable[[bytes], Sequence[Unlock]]

    def may_hold(self, raw: bytes) -> bool:
        """Whether the job may hold a lock, by a glance at its bytes."""
        return any(mark in raw for mark in self.marks)


#: finds none: what is dropped leaves its locks behind
NO_LOCKS = Finder((), lambda _: ())


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
