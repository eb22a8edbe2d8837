"""The states of tracked jobs, kept where their queue is; see ``settlement.states`` for what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from queuepool.payload.ending import StateRecord
from queuepool.payload.lease import Lease

#: most bytes that are read of a state: the largest of ours, its result as text in JSON, has a third of that
MAX_STATE = 1024 * 1024


class JobStates(Protocol):
    """The states in one store. ``StoreDown`` and ``StoreError`` as for ``QueueStore``.

    A push and a settlement write their states by the verbs of ``QueueStore``.
    """

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        """Write the states of running jobs, each only if its lease is still held."""

    def get(self, job_id: str) -> bytes | None:
        """The last state that was written for this job, cut at ``MAX_STATE``; ``None`` if none is kept."""

    def prune(self) -> int:
        """Remove states whose time is over, where the store does not do so by itself; returns how many."""
