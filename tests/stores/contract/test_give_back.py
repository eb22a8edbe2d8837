"""Jobs go back as they were, if they were not begun or their reservation was never answered."""

from __future__ import annotations

import pytest

from queuepool.payload.lease import Tallies
from tests.support.samples import attempted, ids, new_jobs, payload
from tests.support.store_contract import OURS, QUEUES, THEIRS, attempts_of, drained, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_jobs_given_back_are_first_again_in_their_order_as_if_never_reserved(store):
    raws = [payload(name, data=[[], 2**70]) for name in "dbca"]
    store.push("default", new_jobs(*raws))
    leases = store.reserve(["default"], OURS, 3).leases

    assert [True, True, True] == store.give_back(leases)
    assert raws[0] == store.sizes("default").oldest
    assert [attempted(raw) for raw in raws] == drained(store)


def test_jobs_given_back_keep_the_attempts_that_they_had(store):
    lease = reserved(store, payload("a"))[0]
    for _ in range(4):
        store.release(lease, 0.0, "a")
        [lease] = store.reserve(["default"], OURS, 1).leases

    store.give_back([lease])

    assert [5, 5] == [attempts_of(lease), attempts_of(store.reserve(["default"], THEIRS, 1).leases[0])]


def test_jobs_of_several_queues_are_given_back_to_their_own(store):
    high, default = reserved(store, payload("a"), queue="high"), reserved(store, payload("b"))

    assert [True, True] == store.give_back([*default, *high])
    assert (payload("a"), payload("b")) == (store.sizes("high").oldest, store.sizes("default").oldest)


def test_a_job_given_back_twice_is_not_taken_from_who_reserved_it_in_between(store):
    store.push("default", new_jobs(payload("a")))
    [lease] = store.reserve(["default"], OURS, 1).leases
    assert [True] == store.give_back([lease])
    [again] = store.reserve(["default"], THEIRS, 1).leases

    assert lease.receipt == again.receipt
    assert [False] == store.give_back([lease])
    assert 1 == store.sizes("default").reserved


@pytest.mark.fault("F02", "F53")
def test_what_a_worker_never_heard_of_is_reclaimed_as_it_was(store):
    store.push("default", new_jobs(payload("a"), payload("b")))
    store.reserve(["default"], OURS, 1)

    assert 1 == len(store.reclaim(["default"], OURS, 0.0, known=()))
    assert payload("a") == store.sizes("default").oldest
    assert (2, 0) == (store.sizes("default").ready, store.sizes("default").reserved)


def test_what_a_worker_knows_of_is_not_reclaimed(store):
    known = reserved(store, payload("a"), payload("b"))

    assert 1 == len(store.reclaim(["default"], OURS, 0.0, known[:1]))
    assert [True, False] == store.delete(known)


def test_what_a_worker_knew_under_its_former_tag_is_reclaimed_when_it_is_reserved_again(store):
    known = reserved(store, payload("a"))
    store.give_back(known)
    again = store.reserve(["default"], THEIRS, 1).leases
    assert known[0].receipt == again[0].receipt

    assert 1 == len(store.reclaim(["default"], THEIRS, 0.0, known))
    assert [attempted(payload("a"))] == drained(store)


def test_what_others_reserved_is_not_reclaimed(store):
    theirs = reserved(store, payload("a"))

    assert [] == store.reclaim(["default"], THEIRS, 0.0, known=())
    assert [True] == store.delete(theirs)


def test_a_lost_reply_is_found_also_where_the_stores_clock_runs_ahead_of_its_workers(store, at):
    reserved(store, payload("a"))
    at.advance(0.5)

    assert 1 == len(store.reclaim(["default"], OURS, 0.0, known=()))


def test_what_is_reclaimed_is_first_again_in_its_order(store, at):
    for name in "ba":
        reserved(store, payload(name))
        at.advance(1.0)
    store.push("default", new_jobs(payload("c")))

    store.reclaim(["default"], OURS, 5.0, known=())

    assert ["b", "a", "c"] == ids(store.reserve(["default"], THEIRS, 9).leases)


def test_every_queue_is_searched_for_what_is_to_be_reclaimed(store):
    reserved(store, payload("a"), queue="high")
    reserved(store, payload("b"))

    assert 2 == len(store.reclaim(QUEUES, OURS, 0.0, known=()))


def test_with_a_mark_its_crashes_are_counted_in_the_same_step(store):
    lease, other = reserved(store, payload("a"), payload("b"))

    assert [True] == store.give_back([lease], "reading:x")
    assert payload("a") == store.sizes("default").oldest
    assert (Tallies(crashes=1), Tallies()) == (store.tallies("reading:x"), store.tallies("a"))
    assert [True] == store.delete([other])


def test_with_a_mark_nothing_is_counted_for_a_lease_that_is_lost(store):
    [lease] = reserved(store, payload("a"))
    store.give_back([lease], "reading:x")
    [again] = store.reserve(["default"], THEIRS, 1).leases

    assert [False] == store.give_back([lease], "reading:x")
    assert Tallies(crashes=1) == store.tallies("reading:x")
    assert [True] == store.delete([again])
