"""Converts arguments and replies of our scripts from and to the types of the contract."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from queuepool.payload.lease import NOTHING, Ending, Lease, Unlock
from queuepool.stores.contract import NewJob, Reservation
from queuepool.stores.redis.client import explained
from queuepool.stores.redis.keys import Keys

#: jobs that one call may move; more would stall the server's other clients
BATCH = 1000
#: bytes that one push sends: more would make other clients wait, as the server reads a command as a whole
BATCH_BYTES = 1024 * 1024


def following(ending: Ending, unlocks: Sequence[Unlock], keys: Keys) -> tuple[list[str], list[Any]]:
    """Keys and arguments for ``follow.lua``; none for an empty ending."""
    if ending == NOTHING:
        return [], []
    queue, payload = ending.outcome or ("", b"")
    job_id, text, seconds = ending.state or ("", b"", 0.0)
    names = [keys.ready(queue), keys.notify(queue), keys.state(job_id), *(keys.lock(lock.name) for lock in unlocks)]
    return names, [payload, text, whole(seconds), *(lock.owner for lock in unlocks)]


def whole(seconds: float) -> int:
    """Whole seconds for Redis, at least 1."""
    return max(math.ceil(seconds), 1)


def by_queue(leases: Sequence[Lease], queues: Sequence[str]) -> list[Lease]:
    """The leases in the order of their queues. Raises ``ValueError`` for a queue that is not among them."""
    return sorted(leases, key=lambda lease: queues.index(lease.queue))


def reservation(answer: Sequence[Any], queues: Sequence[str], tag: int, done: Sequence[Lease]) -> Reservation:
    """The reply of reserve.lua; ``done`` are the leases that were sent along, in that order."""
    refused, taken, odd, problems, due, is_last = answer
    return Reservation(
        leases=[Lease(queues[number - 1], receipt, tag) for number, receipt in _pairs(taken)],
        refused=[done[int(number) - 1] for number in refused],
        quarantined=[(queues[number - 1], why.decode()) for number, why in _pairs(odd)],
        problems=[(queues[number - 1], explained(text.decode(), "reserve")) for number, text in _pairs(problems)],
        next_due=float(due) if due else None,
        is_last=bool(is_last),
    )


def _pairs(flat: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def batches(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """Batches of at most ``BATCH`` jobs and ``BATCH_BYTES``; a larger payload goes alone."""
    first = size = 0
    for at, job in enumerate(jobs):
        if at - first == BATCH or (size + len(job.payload) > BATCH_BYTES and at > first):
            yield jobs[first:at]
            first, size = at, 0
        size += len(job.payload)
    if jobs:
        yield jobs[first:]
