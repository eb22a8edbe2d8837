"""The states of tracked jobs, kept where their queue is; see ``settlement.states`` for what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.ending import Lock, StateRecord, Unlock
from queuepool.stores.contract import PushStore
from queuepool.stores.locks import Locks


class JobStates(Protocol):
    """Pushes tracked jobs to one store. ``StoreDown`` and ``StoreError`` as for ``QueueStore``."""

    def push(
        self,
        queue: str,
        payloads: Sequence[bytes],
        delay: float,
        states: Sequence[StateRecord],
        lock: Lock | None = None,
    ) -> bool:
        """As ``Pushes.push_tracked``."""


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
