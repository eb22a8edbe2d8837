"""The states of tracked jobs, kept where their queue is; see ``settlement.states`` for what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.ending import Lock, StateRecord, Unlock
from queuepool.payload.lease import Lease
from queuepool.stores.contract import PushStore
from queuepool.stores.locks import Locks

#: most bytes that are read of a state: the largest of ours, its result as text in JSON, has a third of that
MAX_STATE = 1024 * 1024


class JobStates(Protocol):
    """The states in one store. ``StoreDown`` and ``StoreError`` as for ``QueueStore``.

    A settlement writes its state by the verbs of ``QueueStore``.
    """

    def push(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        """As ``Pushes.push_tracked``."""

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        """Write the states of running jobs, each only if its lease is still held."""

    def get(self, job_id: str) -> bytes | None:
        """The last state that was written for this job, cut at ``MAX_STATE``; ``None`` if none is kept."""

    def prune(self) -> int:
        """Remove states whose time is over, where the store does not do so by itself; returns how many."""


class StorePushes:
    """What a producer pushes to: a store's queue, and its states.

    ``locks``: Laravel's, where they are elsewhere. Such a lock is taken first; no transaction covers both, so a death
    in between leaves it held until its time is over, as it does in Laravel.
    """

    def __init__(self, queue: PushStore, states: JobStates, locks: Locks | None = None) -> None:
        self.push = queue.push
        self._queue = queue
        self._states = states
        self._locks = locks

    def push_unique(self, queue: str, payload: bytes, delay: float, lock: Lock) -> bool:
        """As the contract says."""
        if lock.is_elsewhere:
            return self._with(lock, lambda: self._queue.push(queue, [payload], delay))
        return self._queue.push_unique(queue, payload, delay, lock)

    def push_tracked(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        """As the contract says."""
        if lock and lock.is_elsewhere:
            return self._with(lock, lambda: self._states.push(queue, payloads, delay, states))
        return self._states.push(queue, payloads, delay, states, lock)

    def _with(self, lock: Lock, push: Callable[[], object]) -> bool:
        """Push under this lock; ``False`` if another job holds it."""
        assert self._locks
        if not self._locks.take(lock):
            return False
        try:
            push()
        except StoreError as error:
            # Unanswered, the job may have been stored all the same. A producer may lack the right to release.
            if isinstance(error, StoreDenied) or not isinstance(error, StoreDown):
                with suppress(StoreError):
                    self._locks.release([Unlock(lock.name, lock.owner)])
            raise
        return True
