"""Unique locks apart from the queue, as in Laravel applications: the jobs in a database, the cache in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.contract import NewJob, Pushes
from queuepool.stores.locks import Locks


class LocksElsewhere:
    """Pushes to ``pushes``, with Laravel's ``locks`` in another store.

    Such a lock is taken first; no transaction covers both, so a death in between leaves it held until its time is over,
    as it does in Laravel.
    """

    def __init__(self, pushes: Pushes, locks: Locks) -> None:
        self._pushes = pushes
        self._locks = locks

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """As the contract says."""
        if lock is None or not lock.is_elsewhere:
            return self._pushes.push(queue, jobs, delay, lock)
        if not self._locks.take(lock):
            return False
        try:
            return self._pushes.push(queue, jobs, delay)
        except StoreError as error:
            # Unanswered, the job may have been stored all the same. A producer may lack the right to release.
            if isinstance(error, StoreDenied) or not isinstance(error, StoreDown):
                with suppress(StoreError):
                    self._locks.release([Unlock(lock.name, lock.owner)])
            raise
