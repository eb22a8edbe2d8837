"""Make delayed and expired jobs ready on time."""

from __future__ import annotations

from collections.abc import Sequence

from queuepool.stores.contract import QueueStore

#: seconds after the server's whole second, on which Laravel's delays end; Laravel announces no new ones
_AFTER_THE_SECOND = 0.002


class StageDue:
    """Runs at every whole second of the store's clock, and whenever a job is due in between."""

    def __init__(self, store: QueueStore, queues: Sequence[str]) -> None:
        self._store = store
        self._queues = queues

    def run(self, now: float) -> float:
        staged = self._store.stage(self._queues)
        if staged.next_due == 0.0:
            return 0.0  # a batch was full: more is due already
        next_second = 1 - staged.now % 1 + _AFTER_THE_SECOND
        return next_second if staged.next_due is None else min(staged.next_due, next_second)
