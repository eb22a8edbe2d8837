"""Leases that end with records of their attempts, and what is kept of those."""

from __future__ import annotations

import json
from itertools import chain

import pytest

from queuepool.payload.lease import AttemptRecord, Ending, Lease
from queuepool.stores.attempts import KeptAttempt
from queuepool.stores.factory import Stores
from tests.support.samples import payload, record
from tests.support.store_contract import OURS, reserved


def noted(lease: Lease, seconds: float = 60.0, **facts: object) -> Lease:
    """The lease with the record of its attempt."""
    job_id = json.loads(lease.receipt)["id"]
    return lease._replace(record=AttemptRecord(job_id, json.dumps({"id": job_id, **facts})[1:-1], "", seconds))


def kept(built: Stores, queue: str = "default") -> list[KeptAttempt]:
    return list(chain.from_iterable(built.attempts.pages(queue)))


def kept_ids(built: Stores, queue: str = "default") -> list[str]:
    return sorted(json.loads(one.text)["id"] for one in kept(built, queue))


def ended(built: Stores, *names: str, queue: str = "default", seconds: float = 60.0) -> None:
    """These jobs were done one after the other."""
    for name in names:
        [lease] = reserved(built.queue, payload(name), queue=queue)
        assert [True] == built.queue.delete([noted(lease, seconds)])


#: each verb that ends a lease, with whether it did
ENDINGS = {
    "delete": lambda store, lease: store.delete([lease])[0],
    "done with a reserve": lambda store, lease: not store.reserve([lease.queue], OURS, 0, [lease]).refused,
    "finish": lambda store, lease: store.finish(lease, Ending()),
    "fail": lambda store, lease: store.fail(lease, "a", record(lease)),
    "release": lambda store, lease: store.release(lease, 0.0, "a", "exceptions"),
    "release later": lambda store, lease: store.release(lease, 9.0, "a"),
    "quarantine": lambda store, lease: store.quarantine(lease, "odd"),
    "give back": lambda store, lease: store.give_back([lease])[0],
}
each_ending = pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
