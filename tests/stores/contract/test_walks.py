"""Reading a queue from one end to the other, while others take from it and add to it; dropping and moving its jobs."""

from __future__ import annotations

from typing import Any

import pytest

from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending, Lease
from queuepool.stores.contract import MovedJob, QueueWalk, ShelfJob
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, THEIRS, drained, reserved, seen

pytestmark = pytest.mark.usefixtures("at")
ALL = ("ready", "delayed", "reserved")


def ids(jobs: list[ShelfJob]) -> list[str]:
    return [decode(job.payload, job.attempts).id for job in jobs]


def numbered(store: Any, first: int, last: int, queue: str = "default") -> None:
    store.push(queue, new_jobs(*(payload(str(number)) for number in range(first, last))))


def whole(walk: QueueWalk, most: int = 3) -> list[ShelfJob]:
    found: list[ShelfJob] = []
    while page := walk.page(most):
        found += page
    return found


def taken(store: Any, count: int) -> list[Lease]:
    leases: list[Lease] = store.reserve(["default"], OURS, count).leases
    return leases


def test_each_job_is_read_with_its_shelf_and_what_the_store_knows_of_it(store, at):
    reserved(store, payload("taken"))
    numbered(store, 0, 4)
    store.push("default", new_jobs(payload("later")), delay=60.0)
    numbered(store, 4, 5, "other")
    found = {identity: job for job in whole(store.walk("default", ALL)) for identity in ids([job])}

    assert {"taken": "reserved", "later": "delayed", **dict.fromkeys("0123", "ready")} == {
        identity: job.shelf for identity, job in found.items()
    }
    assert (at.now + 60.0, OURS) == (found["later"].at, found["taken"].tag)
    assert 89.0 <= (found["taken"].at or 0.0) - at.now <= 92.0
    assert (None, 0) == (found["0"].at, found["0"].tag)
    assert 1 == decode(found["taken"].payload, found["taken"].attempts).attempts
    assert ["later"] == ids([job for job in whole(store.walk("default", ("delayed",))) if job.shelf == "delayed"])
    assert [] == whole(store.walk("empty", ALL))


def test_a_job_that_stays_is_read_once_while_others_are_taken_and_added(store):
    numbered(store, 0, 100)
    walk = store.walk("default", ("ready",))
    read = ids(walk.page(20))
    store.delete(taken(store, 5))  # the indices in a list fall
    numbered(store, 100, 110)
    read += ids(walk.page(20))
    leases = taken(store, 30)
    read += ids(walk.page(5))
    store.give_back(leases[:25])  # and rise again
    read += ids(whole(walk, 7))

    assert [*map(str, range(100))] == read


def test_a_queue_that_is_emptied_faster_than_it_is_read_has_an_end(store):
    numbered(store, 0, 50)
    walk = store.walk("default", ("ready",))
    read = ids(walk.page(10))
    store.delete(taken(store, 30))
    read += ids(walk.page(10))
    store.delete(taken(store, 20))
    read += ids(whole(walk))

    assert [*map(str, [*range(10), *range(30, 40)])] == read


def test_a_job_that_is_tried_again_meanwhile_is_not_read_again(store, at):
    numbered(store, 0, 6)
    walk = store.walk("default", ("ready",))
    read = ids(walk.page(3))
    [lease] = taken(store, 1)
    store.release(lease, 0.0, "0")

    assert [*"012345"] == read + ids(whole(walk))


def test_jobs_that_are_due_at_one_moment_are_read_once_each(store):
    store.push("default", new_jobs(*(payload(str(number)) for number in range(25))), delay=60.0)
    found = whole(store.walk("default", ("delayed",)), 4)

    assert sorted(map(str, range(25))) == sorted(ids(found))


def test_a_page_may_be_read_again_in_part_and_by_another_process(store):
    numbered(store, 0, 30)
    store.push("default", new_jobs(payload("later"), payload("last")), delay=60.0)
    shelves = ("ready", "delayed")
    walk, read = store.walk("default", shelves), list[str]()
    while page := walk.page(7):
        read += ids(page[:4])
        walk.unread(page[4:])
        walk = store.walk("default", shelves, walk.cursor())
        walk.unread(walk.page(2))
        numbered(store, 100 + len(read), 101 + len(read))

    assert sorted([*map(str, range(30)), "later", "last"]) == sorted(read)
    assert [] == store.walk("default", shelves, walk.cursor()).page(7)


def test_a_second_walk_ends_where_the_first_one_ended(store):
    numbered(store, 0, 40)
    store.push("default", new_jobs(payload("later")), delay=60.0)
    walk = store.walk("default", ("ready", "delayed"))
    assert 41 == len(whole(walk))
    store.delete(taken(store, 5))
    numbered(store, 40, 60)
    store.push("default", new_jobs(payload("last")), delay=90.0)

    assert sorted([*map(str, range(5, 40)), "later"]) == sorted(ids(whole(walk.again())))


def test_a_second_walk_ends_where_the_first_one_was_left_also_if_that_goes_on_elsewhere(store):
    numbered(store, 0, 20)
    walk = store.walk("default", ("ready",))
    assert [*map(str, range(7))] == ids(walk.page(7))
    numbered(store, 20, 25)
    store.delete(taken(store, 2))

    again = store.walk("default", ("ready",), walk.cursor()).again()
    assert [[*map(str, range(2, 7))]] * 2 == [ids(whole(one)) for one in (walk.again(), again)]


def test_a_second_walk_through_what_was_empty_finds_nothing(store):
    walk = store.walk("default", ("ready", "delayed"))
    assert [] == whole(walk)
    numbered(store, 0, 3)
    store.push("default", new_jobs(payload("later")), delay=60.0)

    assert [] == whole(walk.again())


def test_the_last_delayed_job_is_read_although_others_come_before_it(store):
    store.push("default", new_jobs(*(payload(str(number)) for number in range(6))), delay=60.0)
    store.push("default", new_jobs(payload("last")), delay=90.0)
    walk = store.walk("default", ("delayed",))
    read = ids(walk.page(2))
    store.push("default", new_jobs(*(payload(f"new{number}") for number in range(6))), delay=70.0)

    assert "last" in read + ids(whole(walk))


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("cursor", [
    "7", "{}", '["ready"]', '["odd", 1, 2, []]', "[[], 3]", '["a", 1]', "no", "[" * 5000, "[-1, null]",
    '["ready", -1, 2, []]', '["ready", 1, -2, []]', f"[{10**30}, null]", '["delayed", 1, NaN, "a", null, ""]',
    '["ready", 1, 2, ["1", "2", "3", "4", "5", "6", "7", "8", "9"]]',
])  # fmt: skip
def test_a_wrong_cursor_is_refused(store, cursor):
    with pytest.raises(ValueError):
        store.walk("default", ALL, cursor)


def test_jobs_are_dropped_unless_a_worker_has_them_meanwhile(store):
    numbered(store, 0, 40)
    store.push("default", new_jobs(payload("later")), delay=60.0)
    walk = store.walk("default", ("ready", "delayed"))
    dropped: list[str] = []
    while page := walk.page(10):
        meant = [job for job, identity in zip(page, ids(page), strict=True) if identity == "later" or int(identity) % 2]
        store.delete(taken(store, 1))
        answers = store.drop("default", meant)
        gone = [job for job, is_gone in zip(meant, answers, strict=True) if is_gone]
        walk.taken(gone)
        dropped += ids(gone)
        assert [False] * len(gone) == store.drop("default", gone)

    left = [decode(raw, 0).id for raw in drained(store)]
    assert not set(left) & set(dropped)
    assert {"later", *map(str, range(9, 40, 2))} <= set(dropped)
    assert [*map(str, range(10, 40, 2))] == left[-15:]


def test_none_is_skipped_where_all_that_was_read_is_dropped_some_pages_later(store):
    numbered(store, 0, 60)
    walk, read, waiting = store.walk("default", ("ready",)), list[str](), list[ShelfJob]()
    while page := walk.page(7):
        read += ids(page)
        waiting += page
        if len(waiting) > 12:
            assert all(store.drop("default", waiting))
            walk.taken(waiting)
            waiting = []

    assert [*map(str, range(60))] == read


def test_none_is_skipped_where_a_worker_takes_from_the_head_and_all_behind_it_is_dropped(store):
    numbered(store, 0, 120)
    walk, read, waiting = store.walk("default", ("ready",)), list[str](), list[ShelfJob]()
    while page := walk.page(7):
        read += ids(page)
        waiting += [job for job, identity in zip(page, ids(page), strict=True) if int(identity) >= 28]
        if len(waiting) > 20:
            assert all(store.drop("default", waiting))
            walk.taken(waiting)
            waiting = []
            store.delete(taken(store, 2))

    assert [*map(str, range(120))] == read


def test_a_new_job_in_the_place_of_one_that_is_gone_stays(store):
    numbered(store, 0, 3)
    page = store.walk("default", ("ready",)).page(9)
    assert [True] == store.drop("default", page[2:])
    numbered(store, 3, 4)

    assert [False] == store.drop("default", page[2:])
    assert [False] == store.move("default", [MovedJob(page[2], page[2].payload)], "high")
    assert ["0", "1", "3"] == [decode(raw, 0).id for raw in drained(store)]


def test_equal_payloads_are_dropped_as_often_as_it_is_said(store):
    store.push("default", new_jobs(*[payload("same")] * 5))
    page = store.walk("default", ("ready",)).page(5)

    assert [True, True] == store.drop("default", page[:2])
    assert 3 == store.sizes("default").ready


@pytest.mark.every_store("connection")
def test_jobs_that_are_there_are_dropped_although_many_before_them_are_gone(store):
    numbered(store, 0, 12_000)
    walk = store.walk("default", ("ready",))
    page = [*walk.page(11_000)[-40:], *walk.page(20)]
    gone = [job for number, job in enumerate(page) if number % 2]
    assert all(store.drop("default", gone))

    assert [number % 2 == 0 for number in range(60)] == store.drop("default", page)


def test_moved_jobs_come_last_and_are_not_met_by_a_walk_under_way(store):
    numbered(store, 0, 4, "high")
    numbered(store, 4, 8)
    numbered(store, 8, 12, "high")
    walk, page = store.walk("high", ("ready",)), store.walk("default", ("ready",)).page(9)
    read = ids(walk.page(2))
    assert [True] * 4 == store.move("default", [MovedJob(job, job.payload) for job in page], "high")
    read += ids(whole(walk))

    there = [*map(str, [0, 1, 2, 3, 8, 9, 10, 11])]
    assert (there, there) == (read, ids(whole(walk.again())))
    assert [*there, *"4567"] == [decode(raw, 0).id for raw in drained(store, "high")]


def test_what_is_taken_in_one_step_is_bounded_by_jobs_and_bytes(store):
    small, large = (ShelfJob(b"x" * size, "ready") for size in (10, 3_000_000))
    jobs = [large] * 3 + [small] * 700
    steps = [*store.steps(jobs)]

    assert jobs == [job for step in steps for job in step]
    assert all(len(step) == 1 or sum(len(job.payload) for job in step) <= 2**22 for step in steps)
    assert len(steps[1]) == 1
    assert 50 <= len(steps[3]) <= 500


def test_jobs_are_moved_each_to_be_in_one_place(store, at):
    numbered(store, 0, 20)
    store.push("default", new_jobs(payload("later")), delay=60.0)
    numbered(store, 20, 21, "high")
    walk = store.walk("default", ("ready", "delayed"))
    page = [*walk.page(30), *walk.page(30)]
    [held] = taken(store, 1)
    changed = {"7": payload("7", signed="again")}
    moved = [MovedJob(job, changed.get(identity, job.payload)) for job, identity in zip(page, ids(page), strict=True)]
    found = dict(zip(ids(page), store.move("default", moved, "high"), strict=True))

    assert {"0": False} == {identity: answer for identity, answer in found.items() if not answer}
    assert (0, 1, 20, 1) == (
        store.sizes("default").ready, store.sizes("default").reserved, store.sizes("high").ready,
        store.sizes("high").delayed,
    )  # fmt: skip
    assert [False] * 21 == store.move("default", moved, "other")
    store.finish(held, Ending())
    ready = drained(store, "high")
    assert {*map(str, range(1, 21))} == {decode(raw, 0).id for raw in ready}
    assert ["7"] == [decode(raw, 0).id for raw in ready if "signed" in decode(raw, 0).fields]
    at.advance(61.0)
    assert ["later"] == [decode(seen(lease), 0).id for lease in store.reserve(["high"], THEIRS, 9).leases]
