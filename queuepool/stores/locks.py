"""Unique locks: how to find those of dropped jobs, and locks in a store other than the jobs'."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from queuepool.errors import StoreError
from queuepool.payload.lease import Lock, StateRecord, Unlock

#: most bytes read of an owner: a database's column has 255 characters
MAX_OWNER = 1024
_log = logging.getLogger("queuepool")


class HeldLock(NamedTuple):
    """A unique lock that is held; it expires in ``seconds``, ``None`` = never."""

    name: str
    owner: str
    seconds: float | None


class Locks(Protocol):
    """The locks in one of Laravel's caches."""

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """Release them, and return how many were held; a lock of another owner counts, and stays."""

    def take(self, lock: Lock) -> bool:
        """Take the lock, or keep it for these seconds from now; ``False`` if another owner has it."""

    def held(self) -> Iterator[HeldLock]:
        """The unique locks that are held, in any order, read page by page."""

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        """The owners, by name, of those of these locks that are held."""

    def all_keys(self) -> list[str]:
        """The keys of all held unique locks, whatever their prefix; reads the whole store."""


class Finder(NamedTuple):
    """How to find what ends with jobs that are dropped: their unique locks, and the states of tracked ones."""

    #: one of these is in the bytes of each job that may hold a lock
    marks: tuple[bytes, ...]
    #: the locks that the job with these bytes holds
    locks_of: Callable[[bytes], Sequence[Unlock]]
    #: one of these is in the bytes of each job that asks to be tracked
    tracks: tuple[bytes, ...] = ()
    #: what the kept state of the job with these bytes becomes: of this queue, with so many attempts (``None``: as the
    #: bytes say). ``None`` for what cannot be a job
    state_of: Callable[[str, bytes, int | None], StateRecord | None] = lambda *_: None

    def may_hold(self, raw: bytes) -> bool:
        """Whether the job may hold a lock; a quick test of its bytes."""
        return any(mark in raw for mark in self.marks)


#: finds none: dropped jobs leave their locks behind
NO_LOCKS = Finder((), lambda _: ())


class LocksOf:
    """Divides the locks of a job between its ``own`` store, of this ``kind``, and the stores with Laravel's locks.

    Those elsewhere are released before the job is settled. A crash in between may let a duplicate be dispatched too
    early; in the other order it would leave the lock held. The locks of a job that is not leased, which a worker may
    take meanwhile, are released afterwards. ``elsewhere``: the other stores, with the kind of each.
    """

    def __init__(self, kind: str, own: Locks, elsewhere: Sequence[tuple[str, Locks]] = ()) -> None:
        self._kind = kind
        self._elsewhere = elsewhere
        self._is_found = False
        #: the locks in the jobs' own store
        self.own = own
        #: whether there were locks to release but none was found anywhere
        self.missed = False

    def here(self, unlocks: Sequence[Unlock]) -> Sequence[Unlock]:
        """The locks that may be in the jobs' own store; those elsewhere are released now.

        A lock may be in any store of its kind, or in any store if its kind is unknown.
        """
        self.missed, self._is_found = False, self._is_found or not unlocks
        for found in self._released(unlocks):
            self._is_found |= found > 0
        return self.own_among(unlocks)

    def own_among(self, unlocks: Sequence[Unlock]) -> Sequence[Unlock]:
        """The locks that may be in the jobs' own store; those elsewhere stay."""
        return [lock for lock in unlocks if lock.store in ("", self._kind)]

    def release_elsewhere(self, unlocks: Sequence[Unlock]) -> None:
        """Release those that may be elsewhere, after their jobs were taken out. A lock that stays is a warning."""
        try:
            for _ in self._released(unlocks):
                pass
        except StoreError as error:
            _log.warning("unique locks stay held, %s: %s", ", ".join(lock.name for lock in unlocks), error)

    def _released(self, unlocks: Sequence[Unlock]) -> Iterator[int]:
        """Releases those that may be elsewhere, store by store: how many each held."""
        for kind, locks in self._elsewhere:
            if others := [lock for lock in unlocks if lock.store in ("", kind)]:
                yield locks.release(others)

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        """As ``Locks``, in all of the stores. Raises ``StoreError``."""
        places = self.own, *(locks for _, locks in self._elsewhere)
        return {name: owner for locks in places for name, owner in locks.owners(names).items()}

    def found(self, here: int) -> None:
        """Note how many locks there were in the jobs' own store, once it has released them.

        Until then, what was found elsewhere is remembered: it is gone when an unanswered call is repeated.
        """
        self.missed, self._is_found = not self._is_found and not here, False

    def ended(self, answer: int) -> bool:
        """Whether a job was ended. The answer is then 1 plus the number of locks that were there, else 0."""
        if answer > 0:
            self.found(answer - 1)
        return answer > 0
