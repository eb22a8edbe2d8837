"""The states of tracked jobs, kept where their queue is; see ``settlement.states`` for what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from queuepool.payload.ending import Lock, StateRecord
from queuepool.payload.lease import Lease
from queuepool.stores.contract import PushStore


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
        """The last state that was written for this job; ``None`` if none is kept."""

    def prune(self) -> int:
        """Remove states whose time is over, where the store does not do so by itself; returns how many."""


class StorePushes:
    """What a producer pushes to: a store's queue, and its states."""

    def __init__(self, queue: PushStore, states: JobStates) -> None:
        self.push = queue.push
        self.push_unique = queue.push_unique
        self.push_tracked = states.push
