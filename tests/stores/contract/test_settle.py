"""A reserved job is settled once, and only by the worker that holds it."""

from __future__ import annotations

import json

import pytest

from queuepool.payload.lease import Tallies
from queuepool.stores.contract import NO_TRY
from tests.support.samples import TALLIES, attempted, new_jobs, payload
from tests.support.store_contract import (
    EMPTY,
    OURS,
    RETRY_AFTER,
    THEIRS,
    drained,
    each_settlement,
    record,
    reserved,
    state,
)

pytestmark = pytest.mark.usefixtures("at")


@pytest.mark.every_store("connection")
@each_settlement
def test_a_job_is_settled_once(built, settle):
    lease = reserved(built.queue, payload("a"))[0]

    assert settle(built.queue, lease)
    after = state(built)
    assert not settle(built.queue, lease)
    assert after == state(built)


@pytest.mark.every_store("connection")
@pytest.mark.fault("F62")
@each_settlement
def test_a_late_settlement_is_refused_when_another_worker_has_the_job(built, at, settle):
    late = reserved(built.queue, payload("a"))[0]
    at.advance(RETRY_AFTER + 1)
    theirs = built.queue.reserve(["default"], THEIRS, 1).leases
    before = state(built)

    assert not settle(built.queue, late)
    assert before == state(built)
    assert [True] == built.queue.delete(theirs)


@pytest.mark.every_store("connection")
@each_settlement
def test_a_settlement_in_one_queue_leaves_its_twin_in_another_alone(built, settle):
    ours = reserved(built.queue, payload("a"))[0]
    twin = reserved(built.queue, payload("a"), queue="high")

    settle(built.queue, ours)

    assert [True] == built.queue.delete(twin)


def test_a_delete_answers_for_each_job_of_each_queue(store):
    high, default = reserved(store, payload("a"), queue="high"), reserved(store, payload("b"), payload("c"))
    store.delete(default[:1])

    assert [True, False, True] == store.delete([*high, *default])
    assert (EMPTY, EMPTY) == (store.sizes("high"), store.sizes("default"))


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_a_job_that_is_put_off_comes_back_behind_the_others_with_its_former_attempts(store, at, delay):
    lease = reserved(store, payload("a"), payload("b"))[0]
    store.push("default", new_jobs(payload("c")))
    assert store.release(lease, delay, "a", NO_TRY)
    assert not store.release(lease, delay, "a", NO_TRY)

    early = drained(store)
    at.advance(delay)
    came = [*early, *drained(store)]
    assert [attempted(payload("c")), attempted(payload("a"))] == came
    assert Tallies() == store.tallies("a")


def test_a_released_job_comes_back_after_its_delay_and_counts_the_attempt(store, at):
    store.release(reserved(store, payload("a"))[0], 5.0, "a")

    at.advance(4.5)
    assert [] == drained(store)
    at.advance(0.5)
    assert [attempted(payload("a"), 2)] == drained(store)


def test_a_job_released_without_delay_waits_behind_the_others(store):
    lease = reserved(store, payload("a"))[0]
    store.push("default", new_jobs(payload("b")))

    store.release(lease, 0.0, "a")

    assert [attempted(payload("b")), attempted(payload("a"), 2)] == drained(store)


def test_crashes_are_counted_and_forgotten_by_themselves(store):
    assert [1, 2] == [store.count_crash("reading:x") for _ in range(2)]
    assert (Tallies(crashes=2), Tallies()) == (store.tallies("reading:x"), store.tallies("x"))

    store.forget_tallies("reading:x")
    assert Tallies() == store.tallies("reading:x")


def test_a_job_never_released_has_no_tallies(store):
    assert Tallies() == store.tallies("a")


def test_a_release_raises_the_tally_that_it_names(store):
    for tally in ("exceptions", "crashes", "", "suspects", "exceptions", "suspects", "suspects"):
        store.release(reserved(store, payload("a"))[0], 0.0, "a", tally)
        store.clear("default")

    assert Tallies(exceptions=2, crashes=1, suspects=3) == store.tallies("a")


def test_a_release_whose_lease_was_lost_raises_no_tally(store):
    """As when its steward died after it, and the next one repeats it."""
    lease = reserved(store, payload("a"))[0]

    assert [True, False] == [store.release(lease, 0.0, "a", "suspects") for _ in range(2)]
    assert Tallies(suspects=1) == store.tallies("a")


def test_a_suspect_waits_behind_the_others_and_its_attempt_counts(store):
    lease = reserved(store, payload("a"))[0]
    store.push("default", new_jobs(payload("b")))

    store.release(lease, 0.0, "a", "suspects")

    assert [attempted(payload("b")), attempted(payload("a"), 2)] == drained(store)


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("tally", TALLIES)
def test_a_failed_job_leaves_no_tallies_behind(store, tally):
    store.release(reserved(store, payload("a"))[0], 0.0, "a", tally)
    lease = store.reserve(["default"], OURS, 1).leases[0]

    store.fail(lease, "a", record(lease))

    assert Tallies() == store.tallies("a")


def test_two_jobs_with_one_id_that_fail_are_two_records_and_each_can_be_retried(built):
    for body in (1, 2):
        lease = reserved(built.queue, payload("a", data=body))[0]
        built.queue.fail(lease, "a", {**record(lease), "payload": lease.receipt.decode()})

    assert {"a", "a-2"} == {row.id for row in built.failed.page()}
    for row in built.failed.page():
        assert built.failed.retry(built.failed.get(row.id))
    leases = built.queue.reserve(["default"], OURS, 2).leases
    assert {1, 2} == {json.loads(lease.receipt)["data"] for lease in leases}
