"""The contract of stores/base.py, held against every store; its clock moves only when a test moves it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from eventually import eventually
from samples import attempted, ids, payload

from queuepool.build import Stores
from queuepool.stores.base import FailedJob, Lease, Sizes
from queuepool.verdict import Tallies

RETRY_AFTER = 90.0
QUEUES = ("high", "default")
#: one worker's tag, and another's
OURS, THEIRS = 7, 8
EMPTY = Sizes(ready=0, delayed=0, reserved=0, quarantined=0, oldest=None)
QUICK = 1.0


class Clock:
    """The store's, at a second of our choice."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.now = 1_000_000.0
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._store.clock = repr(self.now)


@pytest.fixture
def redis_stores(stores: Stores) -> Stores:
    return stores


@pytest.fixture(params=["redis"])
def built(request: pytest.FixtureRequest) -> Stores:
    """A connection of each driver."""
    return request.getfixturevalue(f"{request.param}_stores")


@pytest.fixture
def store(built: Stores) -> Any:
    return built.queue


@pytest.fixture(autouse=True)
def at(store: Any) -> Clock:
    return Clock(store)


def record(lease: Lease, identity: str = "a") -> dict[str, Any]:
    """A row for the failed store."""
    facts = {"id": identity, "name": "app.ok", "queue": lease.queue, "connection": "default", "attempts": 1}
    return {**facts, "payload": lease.receipt.decode(), "exception": "RuntimeError: told to"}


Settle = Callable[[Any, Lease], bool]
SETTLEMENTS: dict[str, Settle] = {
    "delete": lambda store, lease: store.delete([lease])[0],
    "release now": lambda store, lease: store.release(lease, 0.0, "a", "exceptions"),
    "release later": lambda store, lease: store.release(lease, 5.0, "a", "exceptions"),
    "give back": lambda store, lease: store.give_back([lease])[0],
    "fail": lambda store, lease: store.fail(lease, "a", record(lease)),
    "quarantine": lambda store, lease: store.quarantine(lease, "odd"),
}
each_settlement = pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)


def state(built: Stores) -> tuple[object, ...]:
    """All that a verb could have changed for the job ``a``."""
    set_aside = [entry for queue in QUEUES for entry in built.quarantine.entries(queue)]
    return *map(built.queue.sizes, QUEUES), set_aside, built.failed.page(), built.queue.tallies("a")


def reserved(store: Any, *raws: bytes, queue: str = "default") -> list[Lease]:
    """Push these and reserve them."""
    store.push(queue, raws)
    return store.reserve([queue], OURS, len(raws)).leases


def drained(store: Any, *queues: str) -> list[bytes]:
    """The receipts of all ready jobs."""
    return [lease.receipt for lease in store.reserve(queues or ("default",), OURS, 10_000).leases]


# Push


def test_jobs_are_reserved_in_the_order_they_were_pushed(store):
    store.push("default", [payload("a"), payload("b")])
    store.push("default", [payload("c")])

    assert ["a", "b", "c"] == ids(store.reserve(["default"], OURS, 5).leases)


def test_a_push_of_thousands_keeps_every_job_in_its_order(store):
    names = [f"job-{number}" for number in range(2_500)]

    store.push("default", [payload(name) for name in names])

    assert names == ids(store.reserve(["default"], OURS, 5_000).leases)


def test_thousands_of_delayed_jobs_are_all_kept(store):
    store.push("default", [payload(f"job-{number}") for number in range(2_500)], delay=10.0)

    assert 2_500 == store.sizes("default").delayed


def test_a_delayed_job_is_reserved_when_its_delay_is_over_and_not_before(store, at):
    store.push("default", [payload("a")], delay=2.5)

    at.advance(2.25)
    assert [] == drained(store)
    at.advance(0.25)
    assert [attempted(payload("a"))] == drained(store)


def test_a_push_of_nothing_changes_nothing(store):
    store.push("default", [])

    assert EMPTY == store.sizes("default")


# Reserve


def test_a_reservation_raises_attempts_and_no_other_byte(store):
    raw = payload("a", data={"empty": [], "big": 2**70, "text": 'é/"attempts":0}'})

    assert [attempted(raw)] == [lease.receipt for lease in reserved(store, raw)]


def test_an_empty_queue_gives_nothing_and_says_that_nothing_waits(store):
    reservation = store.reserve(QUEUES, OURS, 1)

    assert ([], None) == (reservation.leases, reservation.next_due)


def test_the_first_queue_is_served_before_all_others(store):
    store.push("default", [payload("a"), payload("b")])
    store.push("high", [payload("c")])

    first = store.reserve(QUEUES, OURS, 2).leases

    assert [("high", "c"), ("default", "a")] == list(zip([lease.queue for lease in first], ids(first), strict=True))


def test_a_reserve_takes_no_more_than_its_limit(store):
    store.push("default", [payload(name) for name in "abc"])

    assert ["a", "b"] == ids(store.reserve(["default"], OURS, 2).leases)


def test_F56_a_reserve_stages_a_hundred_jobs_at_most_so_that_it_is_quick(store, at):
    store.push("default", [payload(str(number)) for number in range(150)], delay=1.0)
    at.advance(1.0)

    store.reserve(["default"], OURS, 1)

    assert (99, 50) == (store.sizes("default").ready, store.sizes("default").delayed)


def test_F61_a_reserve_sets_aside_sixteen_payloads_at_most_so_that_it_is_quick(store):
    store.push("default", [b"not json"] * 20)

    assert 16 == len(store.reserve(["default"], OURS, 1).quarantined)
    assert (4, 16) == (store.sizes("default").ready, store.sizes("default").quarantined)


def test_a_reserved_job_is_nobody_elses(store):
    reserved(store, payload("a"))

    assert [] == store.reserve(["default"], THEIRS, 1).leases


def test_a_reserve_makes_ready_what_is_due_by_itself(store, at):
    reserved(store, payload("a"))
    store.push("default", [payload("b")], delay=10.0)

    at.advance(RETRY_AFTER + 1)

    assert {attempted(payload("a"), 2), attempted(payload("b"))} == set(drained(store))


def test_an_empty_reserve_says_when_the_next_job_is_due(store, at):
    store.push("default", [payload("a")], delay=30.0)
    store.push("high", [payload("b")], delay=12.0)
    at.advance(2.0)

    assert pytest.approx(10.0) == store.reserve(QUEUES, OURS, 1).next_due


def test_an_empty_reserve_says_when_the_first_lease_ends(store):
    reserved(store, payload("a"))

    assert pytest.approx(RETRY_AFTER, abs=0.2) == store.reserve(["default"], THEIRS, 1).next_due


def test_a_reserve_that_brought_jobs_says_nothing_of_the_next(store):
    store.push("high", [payload("a")], delay=30.0)
    store.push("default", [payload("b")])

    assert None is store.reserve(QUEUES, OURS, 1).next_due


def test_a_reserve_settles_what_is_done_in_the_same_call(store):
    done = reserved(store, payload("a"), payload("b"))
    store.push("default", [payload("c")])

    reservation = store.reserve(["default"], OURS, 1, done)

    assert (["c"], []) == (ids(reservation.leases), reservation.refused)
    assert 1 == store.sizes("default").total


def test_a_reserve_settles_what_is_done_also_where_nothing_is_wanted(store):
    done = reserved(store, payload("a"))
    store.push("default", [payload("b")])

    assert [] == store.reserve(["default"], OURS, 0, done).leases
    assert (1, 0) == (store.sizes("default").ready, store.sizes("default").reserved)


def test_a_reserve_tells_which_done_jobs_were_not_ours_any_more(store, at):
    lost = reserved(store, payload("a"), queue="high")
    at.advance(RETRY_AFTER + 1)
    again = store.reserve(QUEUES, THEIRS, 1).leases
    ours = reserved(store, payload("b"))

    assert lost == store.reserve(QUEUES, OURS, 1, [*lost, *ours]).refused
    assert [True] == store.delete(again)


# Settling


@each_settlement
def test_a_job_is_settled_once(built, settle):
    lease = reserved(built.queue, payload("a"))[0]

    assert settle(built.queue, lease)
    after = state(built)
    assert not settle(built.queue, lease)
    assert after == state(built)


@each_settlement
def test_F62_a_late_settlement_is_refused_when_another_worker_has_the_job(built, at, settle):
    late = reserved(built.queue, payload("a"))[0]
    at.advance(RETRY_AFTER + 1)
    theirs = built.queue.reserve(["default"], THEIRS, 1).leases
    before = state(built)

    assert not settle(built.queue, late)
    assert before == state(built)
    assert [True] == built.queue.delete(theirs)


@each_settlement
def test_F62_a_late_settlement_is_refused_when_the_job_is_ready_again(built, at, settle):
    late = reserved(built.queue, payload("a"))[0]
    at.advance(RETRY_AFTER + 1)
    built.queue.stage(["default"])
    before = state(built)

    assert not settle(built.queue, late)
    assert before == state(built)


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


def test_a_released_job_comes_back_after_its_delay_and_counts_the_attempt(store, at):
    store.release(reserved(store, payload("a"))[0], 5.0, "a")

    at.advance(4.5)
    assert [] == drained(store)
    at.advance(0.5)
    assert [attempted(payload("a"), 2)] == drained(store)


def test_a_job_released_without_delay_waits_behind_the_others(store):
    lease = reserved(store, payload("a"))[0]
    store.push("default", [payload("b")])

    store.release(lease, 0.0, "a")

    assert [attempted(payload("b")), attempted(payload("a"), 2)] == drained(store)


def test_a_job_never_released_has_no_tallies(store):
    assert Tallies() == store.tallies("a")


def test_a_release_raises_the_tally_that_it_names(store):
    for tally in ("exceptions", "crashes", "", "exceptions"):
        store.release(reserved(store, payload("a"))[0], 0.0, "a", tally)
        store.clear("default")

    assert Tallies(exceptions=2, crashes=1) == store.tallies("a")


def test_a_failed_job_leaves_no_tallies_behind(store):
    store.release(reserved(store, payload("a"))[0], 0.0, "a", "crashes")
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


def test_jobs_given_back_are_first_again_in_their_order_as_if_never_reserved(store):
    raws = [payload(name, data=[[], 2**70]) for name in "dbca"]
    store.push("default", raws)
    leases = store.reserve(["default"], OURS, 3).leases

    assert [True, True, True] == store.give_back(leases)
    assert raws[0] == store.sizes("default").oldest
    assert [attempted(raw) for raw in raws] == drained(store)


def test_jobs_given_back_keep_the_attempts_that_they_had(store):
    lease = reserved(store, payload("a", attempts=4))[0]

    store.give_back([lease])

    assert payload("a", attempts=4) == store.sizes("default").oldest


def test_jobs_of_several_queues_are_given_back_to_their_own(store):
    high, default = reserved(store, payload("a"), queue="high"), reserved(store, payload("b"))

    assert [True, True] == store.give_back([*default, *high])
    assert (payload("a"), payload("b")) == (store.sizes("high").oldest, store.sizes("default").oldest)


# Leases


def test_a_lease_that_ended_makes_the_job_ready_and_counts_the_attempt(store, at):
    reserved(store, payload("a"))

    at.advance(RETRY_AFTER - 0.5)
    assert 0 == store.stage(["default"]).moved
    at.advance(1.0)
    assert 1 == store.stage(["default"]).moved
    assert [attempted(payload("a"), 2)] == drained(store)


def test_a_renewed_lease_lasts_from_then_on(store, at):
    leases = [*reserved(store, payload("a")), *reserved(store, payload("b"), queue="high")]
    at.advance(60.0)

    assert [True, True] == store.renew([(OURS, lease) for lease in leases])
    at.advance(RETRY_AFTER - 0.5)
    assert 0 == store.stage(QUEUES).moved
    at.advance(1.0)
    assert 2 == store.stage(QUEUES).moved


def test_a_renewed_job_is_still_settled_by_its_receipt(store, at):
    leases = reserved(store, payload("a"))
    at.advance(60.0)
    store.renew([(OURS, leases[0])])

    assert [True] == store.delete(leases)


def test_a_renewed_lease_is_still_its_workers(store):
    store.renew([(OURS, reserved(store, payload("a"))[0])])

    assert (0, 1) == tuple(store.reclaim(["default"], tag, 10.0, known=()) for tag in (THEIRS, OURS))


def test_a_lease_that_ended_is_not_renewed(store, at):
    ended, living = reserved(store, payload("a"))[0], reserved(store, payload("b"))[0]
    store.delete([ended])

    assert [False, True] == store.renew([(OURS, ended), (OURS, living)])
    assert 1 == store.sizes("default").total


def test_a_renewal_of_nothing_is_no_error(store):
    assert [] == store.renew([])


def test_F02_F53_what_a_worker_never_heard_of_is_reclaimed_as_it_was(store):
    store.push("default", [payload("a"), payload("b")])
    store.reserve(["default"], OURS, 1)

    assert 1 == store.reclaim(["default"], OURS, 0.0, known=())
    assert payload("a") == store.sizes("default").oldest
    assert (2, 0) == (store.sizes("default").ready, store.sizes("default").reserved)


def test_what_a_worker_knows_of_is_not_reclaimed(store):
    known = reserved(store, payload("a"), payload("b"))

    assert 1 == store.reclaim(["default"], OURS, 0.0, known[:1])
    assert [True, False] == store.delete(known)


def test_what_others_reserved_is_not_reclaimed(store):
    theirs = reserved(store, payload("a"))

    assert 0 == store.reclaim(["default"], THEIRS, 0.0, known=())
    assert [True] == store.delete(theirs)


def test_what_was_reserved_before_the_lost_reply_is_not_reclaimed(store, at):
    earlier = reserved(store, payload("a"))
    at.advance(30.0)
    reserved(store, payload("b"))
    at.advance(3.0)

    assert 1 == store.reclaim(["default"], OURS, 3.0, known=())
    assert [True] == store.delete(earlier)


def test_a_lost_reply_is_found_also_where_the_stores_clock_runs_ahead_of_its_workers(store, at):
    reserved(store, payload("a"))
    at.advance(0.5)

    assert 1 == store.reclaim(["default"], OURS, 0.0, known=())


def test_what_is_reclaimed_is_first_again_in_its_order(store, at):
    for name in "ba":
        reserved(store, payload(name))
        at.advance(1.0)
    store.push("default", [payload("c")])

    store.reclaim(["default"], OURS, 5.0, known=())

    assert ["b", "a", "c"] == ids(store.reserve(["default"], THEIRS, 9).leases)


def test_every_queue_is_searched_for_what_is_to_be_reclaimed(store):
    reserved(store, payload("a"), queue="high")
    reserved(store, payload("b"))

    assert 2 == store.reclaim(QUEUES, OURS, 0.0, known=())


def test_workers_that_join_get_tags_of_their_own(store):
    tags = [store.join() for _ in range(100)]

    assert 100 == len(set(tags))


# Staging


def test_what_is_due_is_staged_and_the_rest_is_announced(store, at):
    store.push("default", [payload("a")], delay=5.0)
    store.push("high", [payload("b")], delay=65.0)
    at.advance(5.0)

    staged = store.stage(QUEUES)

    assert (1, pytest.approx(60.0), at.now) == (staged.moved, staged.next_due, staged.now)
    assert (1, 1) == (store.sizes("default").ready, store.sizes("high").delayed)


def test_the_earlier_of_two_is_announced_however_many_digits_they_have(store, at):
    at.advance(-10.0)
    store.push("high", [payload("a")], delay=5.0)
    store.push("default", [payload("b")], delay=15.0)

    assert pytest.approx(5.0) == store.stage(QUEUES).next_due
    assert pytest.approx(5.0) == store.reserve(QUEUES, OURS, 1).next_due


def test_where_nothing_waits_nothing_is_announced(store):
    staged = store.stage(QUEUES)

    assert (0, None) == (staged.moved, staged.next_due)


def test_F56_a_stage_moves_a_thousand_jobs_at_most_and_says_that_more_are_due(store, at):
    store.push("default", [payload(f"job-{number}") for number in range(1_200)], delay=1.0)
    at.advance(1.0)

    first, second = store.stage(["default"]), store.stage(["default"])

    assert [(1_000, 0.0), (200, None)] == [(staged.moved, staged.next_due) for staged in (first, second)]


def test_of_hundreds_that_are_staged_at_once_each_is_ready_once_and_in_its_order(store, at):
    names = [f"{number:03}" for number in range(250)]
    store.push("default", [payload(name) for name in names], delay=10.0)
    at.advance(10.0)

    assert 250 == store.stage(["default"]).moved
    assert names == ids(store.reserve(["default"], OURS, 1_000).leases)


def test_a_full_batch_tells_of_what_is_due_in_the_other_queues(store, at):
    store.push("high", [payload(f"job-{number}") for number in range(1_000)], delay=1.0)
    store.push("default", [payload("a")], delay=1.0)
    at.advance(1.0)

    assert 0.0 == store.stage(QUEUES).next_due


def test_F64_identical_payloads_stay_as_many_as_they_are(store, at):
    store.push("default", [payload("a"), payload("a")], delay=1.0)
    store.push("default", [payload("a")], delay=1.0)
    at.advance(1.0)
    leases = store.reserve(["default"], OURS, 9).leases

    assert 3 == len(set(leases))
    assert [True, True, True] == store.delete(leases)


def test_two_payloads_of_no_bytes_can_be_delayed(store):
    store.push("default", [b"", b""], delay=5.0)

    assert 2 == store.sizes("default").delayed


def test_F64_identical_payloads_keep_the_delays_that_each_was_given(store, at):
    for delay in (1.0, 60.0, 30.0):
        store.push("default", [payload("a")], delay)

    moved = []
    for seconds in (1.0, 29.0, 30.0):
        at.advance(seconds)
        moved.append(store.stage(["default"]).moved)

    assert [1, 1, 1] == moved


def test_F64_identical_payloads_released_for_one_moment_stay_as_many_as_they_are(store, at):
    for lease in reserved(store, payload("a"), payload("a")):
        store.release(lease, 5.0, "a")
    at.advance(5.0)

    assert 2 == len(drained(store))


# Waiting


def put_back(built: Stores, at: Clock, lease: Lease) -> None:
    built.queue.quarantine(lease, "odd")
    built.quarantine.put_back("default", next(built.quarantine.entries("default")).id)


def retry(built: Stores, at: Clock, lease: Lease) -> None:
    built.queue.fail(lease, "a", record(lease))
    built.failed.retry(built.failed.page()[0])


def expire(built: Stores, at: Clock, lease: Lease) -> None:
    at.advance(RETRY_AFTER + 1)
    built.queue.stage(["default"])


WAYS_BACK: dict[str, Callable[[Stores, Clock, Lease], object]] = {
    "released": lambda built, at, lease: built.queue.release(lease, 0.0, "a"),
    "given back": lambda built, at, lease: built.queue.give_back([lease]),
    "reclaimed": lambda built, at, lease: built.queue.reclaim(["default"], OURS, 0.0, known=()),
    "expired": expire,
    "retried": retry,
    "put back": put_back,
}


@pytest.mark.parametrize("way", WAYS_BACK.values(), ids=WAYS_BACK)
def test_a_job_that_becomes_ready_again_ends_a_wait(built, at, way):
    way(built, at, reserved(built.queue, payload("a"))[0])
    began = time.monotonic()

    built.queue.wait(QUEUES, timeout=5.0)

    assert time.monotonic() - began < QUICK
    assert 1 == len(drained(built.queue))


@pytest.mark.parametrize("queue", QUEUES)
def test_F60_a_wait_ends_at_once_where_a_job_is_ready(store, queue):
    store.push(queue, [payload("a")])
    began = time.monotonic()

    store.wait(QUEUES, timeout=5.0)

    assert time.monotonic() - began < QUICK


@pytest.mark.parametrize("queue", QUEUES)
def test_a_wait_ends_when_a_job_is_pushed(built, store, queue, connection):
    began = time.monotonic()
    with Elsewhere(connection) as elsewhere:
        elsewhere.do(lambda there: there.push(queue, [payload("a")]))
        store.wait(QUEUES, timeout=5.0)

    assert time.monotonic() - began < QUICK
    assert ["a"] == ids(store.reserve(QUEUES, OURS, 1).leases)


def test_a_wait_for_nothing_ends_after_its_timeout(store):
    began = time.monotonic()

    store.wait(QUEUES, timeout=0.2)

    assert 0.15 < time.monotonic() - began < QUICK


def test_a_wait_without_time_does_not_block(store):
    began = time.monotonic()

    store.wait(QUEUES, timeout=0.0)

    assert time.monotonic() - began < QUICK


@pytest.fixture
def listening(store: Any) -> Any:
    """A store whose steward has been waiting for changes."""
    for _ in range(3):
        store.wait_for_change(QUEUES, timeout=0.01)
    return store


def test_whoever_begins_to_wait_for_changes_misses_none(store):
    store.push("high", [payload("a")], delay=60.0)

    assert store.wait_for_change(QUEUES, timeout=5.0)


def test_an_earlier_due_time_ends_the_wait_for_a_change(listening):
    listening.push("high", [payload("a")], delay=60.0)
    first = listening.wait_for_change(QUEUES, timeout=5.0)
    listening.push("high", [payload("b")], delay=30.0)

    assert (True, True) == (first, listening.wait_for_change(QUEUES, timeout=5.0))


def test_a_later_due_time_does_not_end_the_wait_for_a_change(listening):
    listening.push("high", [payload("a")], delay=30.0)
    listening.wait_for_change(QUEUES, timeout=5.0)

    listening.push("high", [payload("b")], delay=60.0)

    assert not listening.wait_for_change(QUEUES, timeout=0.1)


def test_a_release_ends_the_wait_for_a_change(listening):
    listening.release(reserved(listening, payload("a"))[0], 30.0, "a")

    assert listening.wait_for_change(QUEUES, timeout=5.0)


def test_a_release_for_later_than_what_is_known_does_not_end_the_wait_for_a_change(listening):
    listening.push("default", [payload("b")], delay=20.0)
    lease = reserved(listening, payload("a"))[0]
    listening.wait_for_change(QUEUES, timeout=5.0)

    listening.release(lease, 30.0, "a")

    assert not listening.wait_for_change(QUEUES, timeout=0.1)


def test_where_nothing_changes_the_wait_for_a_change_ends_after_its_timeout(listening):
    began = time.monotonic()

    assert not listening.wait_for_change(QUEUES, timeout=0.2)
    assert 0.15 < time.monotonic() - began < QUICK


def test_what_a_signal_breaks_off_is_not_the_answer_to_the_next_verb(store):
    store.push("default", [payload("a")])
    store.reserve(["default"], OURS, 1)

    with pytest.raises(Rung), ringing(after=0.1):
        store.wait(QUEUES, timeout=5.0)

    assert 1 == store.sizes("default").reserved


class Rung(BaseException):
    """What the handler raises."""


@contextmanager
def ringing(after: float) -> Iterator[None]:
    """A signal that raises ``Rung`` where this process is by then."""

    def ring(signum: int, frame: object) -> None:
        raise Rung

    before = signal.signal(signal.SIGUSR1, ring)
    bell = threading.Timer(after, os.kill, (os.getpid(), signal.SIGUSR1))
    bell.start()
    try:
        yield
    finally:
        bell.join()
        signal.signal(signal.SIGUSR1, before)


class Elsewhere:
    """Another connection, in a thread of its own."""

    def __init__(self, connection: Any) -> None:
        self._stores = Stores(connection)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Elsewhere:
        return self

    def do(self, verb: Callable[[Any], object]) -> None:
        """While the test waits."""
        self._thread = threading.Timer(0.1, verb, (self._stores.queue,))
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._thread:
            self._thread.join()
        self._stores.close()


# What is there


def test_sizes_tell_where_the_jobs_are(store):
    store.quarantine(reserved(store, payload("q"))[0], "odd")
    reserved(store, payload("a"), payload("b"))
    store.push("default", [payload("c")], delay=5.0)
    store.push("default", [payload("d"), payload("e"), payload("f")])

    sizes = store.sizes("default")

    assert Sizes(ready=3, delayed=1, reserved=2, quarantined=1, oldest=payload("d")) == sizes
    assert 6 == sizes.total


def test_a_cleared_queue_has_no_jobs_but_keeps_its_quarantine(store):
    store.quarantine(reserved(store, payload("q"))[0], "odd")
    reserved(store, payload("a"))
    store.push("default", [payload("b")], delay=5.0)
    store.push("default", [payload("c")])

    assert 3 == store.clear("default")
    assert (0, 1) == (store.sizes("default").total, store.sizes("default").quarantined)


def test_a_cleared_queue_wakes_nobody(store):
    store.push("default", [payload("a")])
    store.clear("default")
    began = time.monotonic()

    store.wait(["default"], timeout=0.2)

    assert time.monotonic() - began > 0.15


def test_clearing_one_queue_leaves_the_others_alone(store):
    store.push("high", [payload("a")])
    store.push("default", [payload("b")])

    store.clear("high")

    assert 1 == store.sizes("default").ready


def test_F41_F42_the_clock_is_the_stores(store, at):
    at.advance(12.5)

    assert at.now == store.now()


# The failed store


def failed_job(built: Stores, identity: str = "a", raw: bytes = b"") -> FailedJob:
    """Fail a fresh job and read its record."""
    lease = reserved(built.queue, raw or payload(identity))[0]
    built.queue.fail(lease, identity, record(lease, identity))
    found = built.failed.get(identity)
    assert found
    return found


def test_a_failed_job_is_recorded_and_ended(built, at):
    found = failed_job(built)

    facts = FailedJob(
        id="a",
        name="app.ok",
        queue="default",
        connection="default",
        attempts=1,
        payload=attempted(payload("a")).decode(),
        exception="RuntimeError: told to",
        failed_at=at.now,
    )
    assert facts == found
    assert EMPTY == built.queue.sizes("default")


def test_a_job_pushed_again_that_fails_again_has_a_second_record(built, at):
    failed_job(built)
    at.advance(10.0)

    failed_job(built)

    assert [("a-2", at.now), ("a", at.now - 10.0)] == [(row.id, row.failed_at) for row in built.failed.page()]


def test_failed_jobs_are_listed_page_by_page_the_latest_first(built, at):
    for name in "abc":
        at.advance(1.0)
        failed_job(built, name)

    pages = built.failed.page(0, 2), built.failed.page(2, 2)

    assert [["c", "b"], ["a"]] == [[found.id for found in page] for page in pages]


def test_a_retried_job_begins_anew_with_every_other_byte_as_it_was(built):
    raw = payload("a", data={"empty": [], "big": 2**70, "attempts": 3}, attempts=4)
    found = failed_job(built, "a", raw)

    assert built.failed.retry(found)
    assert attempted(raw, 0) == built.queue.sizes("default").oldest
    assert 0 == built.failed.count()


def test_a_retried_job_waits_behind_the_others(built):
    lease = reserved(built.queue, payload("a"))[0]
    built.queue.fail(lease, "a", record(lease))
    built.queue.push("default", [payload("b")])

    built.failed.retry(built.failed.page()[0])

    assert [attempted(payload("b")), attempted(payload("a"))] == drained(built.queue)


def test_a_job_is_retried_once(built):
    found = failed_job(built)
    built.failed.retry(found)

    assert not built.failed.retry(found)
    assert 1 == built.queue.sizes("default").total


def test_a_job_may_be_retried_in_another_queue(built):
    built.failed.retry(failed_job(built), queue="high")

    assert (0, 1) == (built.queue.sizes("default").total, built.queue.sizes("high").ready)


def test_forgotten_jobs_are_gone(built):
    for name in "abc":
        failed_job(built, name)

    assert 2 == built.failed.forget(["a", "c", "never"])
    assert (["b"], 1) == ([found.id for found in built.failed.page()], built.failed.count())
    assert None is built.failed.get("a")
    assert 0 == built.failed.forget([])


def test_jobs_that_failed_before_a_moment_are_found(built, at):
    for name in "abc":
        failed_job(built, name)
        at.advance(10.0)

    assert ["a", "b"] == built.failed.older_than(at.now - 10.0)
    assert ["a"] == built.failed.older_than(at.now, count=1)


# The quarantine


def test_what_is_set_aside_keeps_its_bytes_its_reason_and_its_time(built, at):
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")

    entries = list(built.quarantine.entries("default"))

    assert [("default", "odd", at.now, payload("a"))] == [
        (entry.queue, entry.reason, entry.at, entry.payload) for entry in entries
    ]


def test_the_quarantine_is_read_oldest_first_however_long_it_is(built):
    raws = [payload(f"job-{number}") for number in range(250)]
    for lease in reserved(built.queue, *raws):
        built.queue.quarantine(lease, "odd")

    assert raws == [entry.payload for entry in built.quarantine.entries("default")]


def set_aside(built: Stores) -> str:
    built.queue.quarantine(reserved(built.queue, payload("a"))[0], "odd")
    return next(built.quarantine.entries("default")).id


def test_what_was_set_aside_is_put_back_as_it_was(built):
    entry = set_aside(built)

    assert built.quarantine.put_back("default", entry)
    assert [attempted(payload("a"))] == drained(built.queue)
    assert not built.quarantine.put_back("default", entry)


def test_what_was_set_aside_may_be_mended_before_it_is_put_back(built):
    built.quarantine.put_back("default", set_aside(built), payload("b"))

    assert [attempted(payload("b"))] == drained(built.queue)


def test_what_was_set_aside_may_be_dropped(built):
    entry = set_aside(built)

    assert built.quarantine.drop("default", entry)
    assert EMPTY == built.queue.sizes("default")
    assert not built.quarantine.drop("default", entry)


def test_of_two_equal_entries_one_is_put_back(built):
    built.queue.push("default", [b"not json", b"not json"])
    built.queue.reserve(["default"], OURS, 2)
    first, second = built.quarantine.entries("default")

    assert built.quarantine.put_back("default", first.id)
    assert [second] == list(built.quarantine.entries("default"))
    assert 1 == built.queue.sizes("default").ready


def test_an_entry_of_another_queue_is_not_there(built):
    entry = set_aside(built)

    assert not built.quarantine.put_back("high", entry)
    assert not built.quarantine.drop("high", entry)


def test_many_workers_never_share_a_job(built, connection):
    built.queue.push("default", [payload(f"job-{number}") for number in range(300)])
    taken: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        stores = Stores(connection)
        stores.queue.clock = built.queue.clock
        tag, done = stores.queue.join(), []
        while leases := stores.queue.reserve(["default"], tag, 3, done).leases:
            done = leases
            mine += ids(leases)
        stores.close()

    workers = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for worker in workers:
        worker.start()
    eventually(lambda: not any(worker.is_alive() for worker in workers))

    everything = [name for mine in taken for name in mine]
    assert 300 == len(everything) == len(set(everything))
    assert EMPTY == built.queue.sizes("default")


def test_a_job_given_back_twice_is_not_taken_from_who_reserved_it_in_between(store):
    store.push("default", [payload("a")])
    [lease] = store.reserve(["default"], OURS, 1).leases
    assert [True] == store.give_back([lease], OURS)
    [again] = store.reserve(["default"], THEIRS, 1).leases

    assert lease == again
    assert [False] == store.give_back([lease], OURS)
    assert 1 == store.sizes("default").reserved
