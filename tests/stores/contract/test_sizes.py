"""Sizes of a queue, by the store's clock."""

from __future__ import annotations

import time

import pytest

from queuepool.payload.envelope import decode
from queuepool.stores.contract import Sizes
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_sizes_tell_where_the_jobs_are(store):
    store.quarantine(reserved(store, payload("q"))[0], "odd")
    reserved(store, payload("a"), payload("b"))
    store.push("default", new_jobs(payload("c")), delay=5.0)
    store.push("default", new_jobs(payload("d"), payload("e"), payload("f")))

    sizes = store.sizes("default")

    assert Sizes(ready=3, delayed=1, reserved=2, quarantined=1, oldest=payload("d")) == sizes
    assert 6 == sizes.total


def test_the_first_payloads_are_read_and_stay(store):
    store.push("default", new_jobs(payload("later")), delay=5.0)
    store.push("default", new_jobs(payload("a"), payload("b"), payload("c")))
    store.push("high", new_jobs(payload("other")))

    assert [payload("a"), payload("b")] == store.first("default", 2)
    assert [payload("a"), payload("b"), payload("c")] == store.first("default", 10)
    assert [] == store.first("empty", 10)
    assert 3 == store.sizes("default").ready


def test_the_first_payloads_that_are_delayed_or_with_a_worker_are_read_too(store):
    reserved(store, payload("a"), payload("b"))
    store.push("default", new_jobs(payload("c")), delay=5.0)
    store.push("default", new_jobs(payload("d")), delay=6.0)
    store.push("default", new_jobs(payload("e")))
    found = {state: store.first("default", 10, state) for state in ("ready", "delayed", "reserved")}

    assert {"ready": ["e"], "delayed": ["c", "d"], "reserved": ["a", "b"]} == {
        state: sorted(decode(raw).id for raw in rows) for state, rows in found.items()
    }
    assert [payload("c")] == store.first("default", 1, "delayed")


def test_every_queue_that_holds_something_is_listed(store):
    for queue in ("ready", "later", "taken", "odd", "empty", "ended"):
        store.push(queue, new_jobs(payload(queue)), delay=60.0 if queue == "later" else 0.0)
    store.quarantine(store.reserve(["odd"], OURS, 1).leases[0], "odd")
    store.delete(store.reserve(["ended"], OURS, 1).leases)
    store.reserve(["taken"], OURS, 1)
    store.clear("empty")

    assert ["later", "odd", "ready", "taken"] == store.queues()


def test_a_cleared_queue_has_no_jobs_but_keeps_its_quarantine(store):
    store.quarantine(reserved(store, payload("q"))[0], "odd")
    reserved(store, payload("a"))
    store.push("default", new_jobs(payload("b")), delay=5.0)
    store.push("default", new_jobs(payload("c")))

    assert 3 == store.clear("default")
    assert (0, 1) == (store.sizes("default").total, store.sizes("default").quarantined)


def test_a_cleared_queue_wakes_nobody(store):
    store.push("default", new_jobs(payload("a")))
    store.clear("default")
    began = time.monotonic()

    store.wait(["default"], timeout=0.2)

    assert time.monotonic() - began > 0.15


def test_clearing_one_queue_leaves_the_others_alone(store):
    store.push("high", new_jobs(payload("a")))
    store.push("default", new_jobs(payload("b")))

    store.clear("high")

    assert 1 == store.sizes("default").ready


@pytest.mark.fault("F41", "F42")
def test_the_clock_is_the_stores(store, at):
    at.advance(12.5)

    assert at.now == store.now()
