"""Helpers of the contract's tests: a clock to move, and jobs as every store shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending, Lease
from queuepool.stores.contract import Sizes
from queuepool.stores.factory import Stores
from queuepool.stores.records import FailedJob
from tests.support.samples import attempted, new_jobs, payload, record

RETRY_AFTER = 90.0
QUEUES = ("high", "default")
#: one worker's tag, and another's
OURS, THEIRS = 7, 8
EMPTY = Sizes(ready=0, delayed=0, reserved=0, quarantined=0, oldest=None)
#: seconds: a wait of LONG that ends within QUICK was ended by what it waited for, also on a busy machine
LONG, QUICK = 30.0, 15.0


class Clock:
    """The store's, at a second of our choice."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.now = 1_000_000.0
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._store.clock = repr(self.now)


def attempts_of(lease: Lease) -> int:
    """Which attempt it is, as its worker finds it."""
    return decode(lease.receipt, lease.attempts).attempts


def seen(lease: Lease) -> bytes:
    """The job with its attempts written into it: Redis keeps them there, a table in a column of its own."""
    return lease.receipt if lease.row is None else attempted(lease.receipt, lease.row.attempts)


def reserved(store: Any, *raws: bytes, queue: str = "default") -> list[Lease]:
    """Push these and reserve them."""
    store.push(queue, new_jobs(*raws))
    return store.reserve([queue], OURS, len(raws)).leases


def drained(store: Any, *queues: str) -> list[bytes]:
    """All ready jobs, as they are seen."""
    return [seen(lease) for lease in store.reserve(queues or ("default",), OURS, 10_000).leases]


def failed_job(built: Stores, identity: str = "a", raw: bytes = b"") -> FailedJob:
    """Fail a fresh job and read its record."""
    lease = reserved(built.queue, raw or payload(identity))[0]
    built.queue.fail(lease, identity, record(lease, identity))
    found = built.failed.get(identity)
    assert found
    return found


Settle = Callable[[Any, Lease], bool]
SETTLEMENTS: dict[str, Settle] = {
    "delete": lambda store, lease: store.delete([lease])[0],
    "release now": lambda store, lease: store.release(lease, 0.0, "a", "exceptions"),
    "release later": lambda store, lease: store.release(lease, 5.0, "a", "exceptions"),
    "give back": lambda store, lease: store.give_back([lease])[0],
    "finish": lambda store, lease: store.finish(lease, Ending()),
    "fail": lambda store, lease: store.fail(lease, "a", record(lease)),
    "quarantine": lambda store, lease: store.quarantine(lease, "odd"),
}
each_settlement = pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)


def state(built: Stores) -> tuple[object, ...]:
    """All that a verb could have changed for the job ``a``."""
    set_aside = [entry for queue in QUEUES for entry in built.records.quarantined(queue)]
    return *map(built.queue.sizes, QUEUES), set_aside, built.failed.page(), built.queue.tallies("a")
