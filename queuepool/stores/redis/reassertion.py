"""Tell a server that was promoted what workers hold, before others take it.

Replication is asynchronous: the new primary may not know of the last reserves that the old one has confirmed. Their
jobs are ready there, and would be run a second time, at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from queuepool.payload.lease import Lease
from queuepool.stores.redis.queue import RedisQueue
from queuepool.unix.originals import sleep

#: seconds: the stewards of all pools hear of a failover within a few hundredths
_STEWARDS_FIRST = 0.3


class RedisReassertion:
    """On the connection of a queue."""

    def __init__(self, queue: RedisQueue, retry_after: float) -> None:
        self._queue = queue
        self._retry_after = retry_after

    def come_after(self) -> None:
        """For a worker: send nothing to another server before stewards had time to say what theirs hold.

        That time begins once it takes writes: one that loads its data, say, tells stewards to come back later. The
        write that it must answer removes a key that never exists.
        """
        client = self._queue.client
        client.proof, client.changed = ("DEL", self._queue.keys.room), partial(sleep, _STEWARDS_FIRST)

    def follow(self, changed: Callable[[], object]) -> None:
        """For a steward: have this called whenever another server answers than before, and by the first."""
        self._queue.client.follow_server(changed)

    def reassert(self, leases: Sequence[Lease]) -> list[bool]:
        """Renew these leases, and take them again where their jobs are ready; returns for each whether it holds."""
        keys, queues = self._queue.keys, sorted({lease.queue for lease in leases})
        proofs = [word for lease in leases for word in (queues.index(lease.queue) + 1, lease.tag, lease.receipt)]
        kinds = keys.reserved, keys.ready, keys.delayed, keys.notify
        names = [keys.tags, *(key(queue) for key in kinds for queue in queues)]
        args = [self._queue.clock, self._retry_after, *proofs]
        call = self._queue.limits.renewing(leases, "reassert", names, args)
        return [answer == 1 for answer in self._queue.client.script(*call)]
