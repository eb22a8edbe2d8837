"""``queuepool`` without some of its safety: ``python -m tests.bench.without hand start …`` shows what that costs.

``hand``: nobody could settle what a dead worker held. ``fences``: reservations are Laravel's own, which nobody renews,
tells apart or gives back. ``leases``: nothing is reserved, what a worker held dies with it. ``watch``: besides, nobody
could end a job at its deadline, nor see which one runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from queuepool.board import board
from queuepool.board.held_jobs import HeldJobs
from queuepool.cli import main
from queuepool.payload.lease import Lease
from queuepool.pool import processes as roles
from queuepool.stores.contract import Reservation
from queuepool.stores.redis import queue as redis_queue
from queuepool.worker.slot_writer import HeldBatch, SlotWriter


class BlankHeldJobs(HeldJobs):
    """Holds nothing."""

    def hold(self, *_: Any) -> None:
        pass

    def mark(self, *_: Any) -> None:
        pass

    def drop(self) -> None:
        pass


class BlankBatch(HeldBatch):
    """Writes down no receipt and its stage, and gives nothing back."""

    def requesting(self) -> float:
        return time.monotonic()

    def replied(self) -> None:
        pass

    def hold(self, leases: Sequence[Lease], *_: Any) -> None:
        self.waiting.extend(enumerate(leases))

    def next_job(self) -> Lease:
        return self.waiting.popleft()[1]

    def settled(self, number: int) -> None:
        pass

    def gave_back(self) -> None:
        self.waiting.clear()

    def drop(self) -> None:
        self.done = []


class QuietBatch(BlankBatch):
    """Nor what becomes of a job."""

    def succeeded(self, number: int) -> None:
        pass

    def ended(self) -> None:
        pass


class HandlessSlotWriter(SlotWriter):
    """Of a worker whose jobs no process could settle."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.batch = BlankBatch(self.slot)


class BlankSlotWriter(HandlessSlotWriter):
    """Nor writes down which job runs; it arms no alarm, shows no title. Rounds still have their deadline."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.batch = QuietBatch(self.slot)

    def begins(self, *_: Any, **__: Any) -> float:
        return 0.0

    def arm(self, *_: Any) -> None:
        pass

    def is_intact(self) -> bool:
        return True

    def is_open(self) -> bool:
        return True


class PlainQueue(redis_queue.RedisQueue):
    """Laravel's reservations of one queue, many at once: deletes, counts the attempt, reserves, and nothing else."""

    _SCRIPT = """
        for i = 3, #ARGV do redis.call('zrem', KEYS[2], ARGV[i]) end
        local jobs, expires = redis.call('lrange', KEYS[1], 0, ARGV[1] - 1), redis.call('time')[1] + ARGV[2]
        for i, job in ipairs(jobs) do
          jobs[i] = string.gsub(job, '"attempts":(%d+)}$', function(n) return '"attempts":' .. n + 1 .. '}' end)
          redis.call('zadd', KEYS[2], expires, jobs[i])
        end
        redis.call('ltrim', KEYS[1], #jobs, -1)
        return jobs
    """

    reserve_waiting = None  # its workers wait, and then reserve

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        return self.reserve_ahead(queues, tag, limit, done)()

    def reserve_ahead(
        self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()
    ) -> Callable[[], Reservation]:
        (queue,) = queues
        answer = self.client._connection.send(*self._words(queue, limit, [lease.receipt for lease in done]))
        return lambda: Reservation(leases=[Lease(queue, raw) for raw in answer.get() or ()])

    def _words(self, queue: str, limit: int, done: list[bytes]) -> list[Any]:
        keys = self.keys.ready(queue), self.keys.reserved(queue)
        return ["EVALSHA", self._digest, 2, *keys, limit, self._retry_after, *done]

    @cached_property
    def _digest(self) -> str:
        return self.client.command("SCRIPT", "LOAD", self._SCRIPT)


class PoppingQueue(PlainQueue):
    """Takes jobs off their list, and forgets them."""

    def _words(self, queue: str, limit: int, done: list[bytes]) -> list[Any]:
        return ["LPOP", self.keys.ready(queue), limit]

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return [True for _ in leases]


def unknown() -> list[str]:
    """What is left out here and is no longer there to be left out."""
    queue = redis_queue.RedisQueue
    pairs = (
        (BlankHeldJobs, HeldJobs),
        (BlankBatch, HeldBatch),
        (QuietBatch, HeldBatch),
        (HandlessSlotWriter, SlotWriter),
        (BlankSlotWriter, SlotWriter),
        (PlainQueue, queue),
        (PoppingQueue, queue),
    )
    return [name for ours, real in pairs for name in vars(ours) if name[0] != "_" and not hasattr(real, name)]


if __name__ == "__main__":
    less = sys.argv.pop(1)
    board.HeldJobs = BlankHeldJobs  # type: ignore[misc]
    roles.SlotWriter = BlankSlotWriter if less == "watch" else HandlessSlotWriter  # type: ignore[misc]
    if less != "hand":
        redis_queue.RedisQueue = PlainQueue if less == "fences" else PoppingQueue  # type: ignore[misc]
    main()
