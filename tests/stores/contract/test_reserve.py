"""Jobs are reserved in strict priority, each by one worker."""

from __future__ import annotations

import threading

import pytest

from queuepool.stores.factory import Stores
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.samples import attempted, ids, new_jobs, payload
from tests.support.store_contract import EMPTY, OURS, QUEUES, RETRY_AFTER, THEIRS, attempts_of, drained, reserved, seen

pytestmark = pytest.mark.usefixtures("at")


def test_a_reservation_raises_attempts_and_no_other_byte(store):
    raw = payload("a", data={"empty": [], "big": 2**70, "text": 'é/"attempts":0}'})

    assert [(attempted(raw), 1)] == [(seen(lease), attempts_of(lease)) for lease in reserved(store, raw)]


def test_an_empty_queue_gives_nothing_and_says_that_nothing_waits(store):
    reservation = store.reserve(QUEUES, OURS, 1)

    assert ([], None) == (reservation.leases, reservation.next_due)


def test_the_first_queue_is_served_before_all_others(store):
    store.push("default", new_jobs(payload("a"), payload("b")))
    store.push("high", new_jobs(payload("c")))

    first = store.reserve(QUEUES, OURS, 2).leases

    assert [("high", "c"), ("default", "a")] == list(zip([lease.queue for lease in first], ids(first), strict=True))


def test_a_reserve_takes_no_more_than_its_limit(store):
    store.push("default", new_jobs(*(payload(name) for name in "abc")))

    assert ["a", "b"] == ids(store.reserve(["default"], OURS, 2).leases)


def test_a_reserved_job_is_nobody_elses(store):
    reserved(store, payload("a"))

    assert [] == store.reserve(["default"], THEIRS, 1).leases


def test_a_reserve_makes_ready_what_is_due_by_itself(store, at):
    reserved(store, payload("a"))
    store.push("default", new_jobs(payload("b")), delay=10.0)

    at.advance(RETRY_AFTER + 1)

    assert {attempted(payload("a"), 2), attempted(payload("b"))} == set(drained(store))


def test_an_empty_reserve_says_when_the_next_job_is_due(store, at):
    store.push("default", new_jobs(payload("a")), delay=30.0)
    store.push("high", new_jobs(payload("b")), delay=12.0)
    at.advance(2.0)

    assert pytest.approx(10.0) == store.reserve(QUEUES, OURS, 1).next_due


def test_an_empty_reserve_says_when_the_first_lease_ends(store):
    reserved(store, payload("a"))

    assert pytest.approx(RETRY_AFTER, abs=0.2) == store.reserve(["default"], THEIRS, 1).next_due


def test_a_reserve_that_brought_jobs_says_nothing_of_the_next(store):
    store.push("high", new_jobs(payload("a")), delay=30.0)
    store.push("default", new_jobs(payload("b")))

    assert None is store.reserve(QUEUES, OURS, 1).next_due


def test_a_reserve_settles_what_is_done_in_the_same_call(store):
    done = reserved(store, payload("a"), payload("b"))
    store.push("default", new_jobs(payload("c")))

    reservation = store.reserve(["default"], OURS, 1, done)

    assert (["c"], []) == (ids(reservation.leases), reservation.refused)
    assert 1 == store.sizes("default").total


def test_a_reserve_settles_what_is_done_also_where_nothing_is_wanted(store):
    done = reserved(store, payload("a"))
    store.push("default", new_jobs(payload("b")))

    assert [] == store.reserve(["default"], OURS, 0, done).leases
    assert (1, 0) == (store.sizes("default").ready, store.sizes("default").reserved)


def test_a_reserve_settles_what_was_done_under_the_tag_that_its_worker_had_before(store):
    done = reserved(store, payload("a"), payload("b"))

    assert [] == store.reserve(["default"], THEIRS, 1, done).refused
    assert EMPTY == store.sizes("default")


def test_a_reserve_leaves_what_was_done_under_a_tag_of_before_to_who_has_it_by_now(store):
    [lost] = reserved(store, payload("a"))
    store.give_back([lost])
    [theirs] = store.reserve(["default"], THEIRS, 1).leases

    assert [lost] == store.reserve(["default"], THEIRS + 1, 1, [lost]).refused
    assert [True] == store.renew([theirs])


def test_a_reserve_tells_which_done_jobs_were_not_ours_any_more(store, at):
    lost = reserved(store, payload("a"), queue="high")
    at.advance(RETRY_AFTER + 1)
    again = store.reserve(QUEUES, THEIRS, 1).leases
    ours = reserved(store, payload("b"))

    assert lost == store.reserve(QUEUES, OURS, 1, [*lost, *ours]).refused
    assert [True] == store.delete(again)


def test_many_workers_never_share_a_job(built, connection):
    built.queue.push("default", new_jobs(*(payload(f"job-{number}") for number in range(300))))
    taken: list[list[str]] = [[] for _ in range(4)]

    def work(mine: list[str]) -> None:
        stores = Stores(connection, reply_timeout=PATIENCE)
        stores.queue.clock = built.queue.clock
        tag, done = stores.queue.join(), []
        while leases := asked_again(lambda: stores.queue.reserve(["default"], tag, 3, done).leases):  # noqa: B023
            done = leases
            mine += ids(leases)
        stores.close()

    workers = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    everything = [name for mine in taken for name in mine]
    assert 300 == len(everything) == len(set(everything))
    assert EMPTY == built.queue.sizes("default")
