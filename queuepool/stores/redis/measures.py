"""Measures queues in Redis: one script a queue, which takes the same time for any length."""

from __future__ import annotations

from queuepool.stores.measured import Measured
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: bytes of the next job's payload that are read: the steward reads it again and again, and a longer one says less
_MOST = 64 * 1024


class RedisMeasures:
    """``clock``: '' = the server's, or a test's."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self.clock = ""
        self._client = client
        self._keys = keys

    def of(self, queue: str) -> Measured:
        makers = (self._keys.ready, self._keys.delayed, self._keys.reserved, self._keys.quarantine)
        found = self._client.script("measure", [key(queue) for key in makers], [self.clock, _MOST])
        ready, delayed, reserved, quarantined, payload, overdue, now = found
        age = None if payload else 0.0
        return Measured(
            ready, delayed, reserved, quarantined, age, float(now), payload, overdue=max(float(overdue), 0.0)
        )
