"""Due times of schedules: each is settled once, with its job or without one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from queuepool.errors import StoreError
from queuepool.payload.lease import Lock, Unlock
from queuepool.stores.factory import Stores
from queuepool.stores.values import Due, Mark, Result
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import THEIRS, drained

NOW = 1_764_000_000
DUE = Due("nightly", NOW + 60, "reports", payload("a"))


@pytest.fixture
def schedules(built):
    """With one schedule that is seen for the first time."""
    built.queue.push("elsewhere", new_jobs(payload("x")))  # a pool reads the tables before it fires
    assert {"nightly": Mark(NOW, "rule")} == built.values.begin({"nightly": "rule"}, NOW)
    return built.values


def result(schedules, due: Due) -> Result:
    return schedules.fire(due).result


def test_a_due_time_is_pushed_once(schedules, store):
    assert Mark(NOW, "rule") == schedules.fire(DUE).before
    assert Result.SETTLED == result(schedules, DUE)
    assert Result.SETTLED == result(schedules, DUE._replace(at=NOW))
    assert 1 == store.sizes("reports").ready
    assert {"nightly": Mark(NOW + 60, "rule", NOW + 60)} == schedules.marks()


def test_a_later_due_time_is_pushed_too_and_an_earlier_one_never_again(schedules, store):
    assert Result.PUSHED == result(schedules, DUE._replace(at=NOW + 120))
    assert Result.SETTLED == result(schedules, DUE)
    assert Result.PUSHED == result(schedules, DUE._replace(at=NOW + 180))
    assert 2 == store.sizes("reports").ready


def test_a_new_schedule_counts_from_when_it_is_first_seen(schedules):
    assert Result.SETTLED == result(schedules, DUE._replace(at=NOW))
    assert schedules.fire(DUE._replace(name="unknown")) is None


def test_a_schedule_that_is_seen_again_keeps_its_mark(schedules):
    result(schedules, DUE)

    assert {"nightly": Mark(NOW + 60, "rule", NOW + 60)} == schedules.begin({"nightly": "rule"}, NOW + 900)


def test_a_changed_rule_counts_from_when_it_is_first_seen_and_never_goes_back(schedules):
    result(schedules, DUE)

    assert {"nightly": Mark(NOW + 900, "other", NOW + 60)} == schedules.begin({"nightly": "other"}, NOW + 900)
    assert {"nightly": Mark(NOW + 900, "rule", NOW + 60)} == schedules.begin({"nightly": "rule"}, NOW)


def test_a_time_can_be_settled_without_a_job(schedules, store):
    assert Result.PASSED == result(schedules, DUE._replace(payload=b""))
    assert Result.SETTLED == result(schedules, DUE)
    assert 0 == store.sizes("reports").total


def test_a_held_lock_settles_the_time_and_pushes_nothing(schedules, store):
    first = Lock("laravel_unique_job:app.ok:schedule:nightly", "one", 60.0)
    assert Result.PUSHED == result(schedules, DUE._replace(lock=first))
    assert Result.HELD == result(schedules, DUE._replace(at=NOW + 120, lock=first._replace(owner="two")))
    assert Result.SETTLED == result(schedules, DUE._replace(at=NOW + 120))

    store.unlock([Unlock(first.name, "two")])
    assert Result.HELD == result(schedules, DUE._replace(at=NOW + 180, lock=first._replace(owner="three")))
    store.unlock([Unlock(first.name, "one")])
    assert Result.PUSHED == result(schedules, DUE._replace(at=NOW + 240, lock=first._replace(owner="three")))
    assert 2 == store.sizes("reports").ready
    assert NOW + 240 == schedules.marks()["nightly"].pushed


def test_a_forgotten_schedule_begins_anew(schedules):
    assert schedules.forget("nightly")
    assert not schedules.forget("nightly")
    assert schedules.fire(DUE) is None
    assert {"nightly": Mark(NOW + 5, "rule")} == schedules.begin({"nightly": "rule"}, NOW + 5)


def test_a_pushed_job_wakes_a_worker_that_waits_and_is_as_it_was(schedules, store):
    result(schedules, DUE)

    store.wait(["reports"], 5.0)
    [lease] = store.reserve(["reports"], THEIRS, 1).leases
    assert payload("a") == lease.receipt.replace(b'"attempts":1', b'"attempts":0')


def test_names_are_compared_by_their_bytes(schedules):
    begun = schedules.begin({"nightly": "rule", "Nightly": "rule", "nightly-2": "rule"}, NOW + 7)

    assert [NOW, NOW + 7, NOW + 7] == [begun[name].settled for name in ("nightly", "Nightly", "nightly-2")]


def test_of_many_stewards_at_once_one_pushes(schedules, connection, store):
    def steward(number: int) -> list[Result]:
        with closing(Stores(connection, reply_timeout=PATIENCE)) as stores:
            asked_again(lambda: stores.values.begin({"nightly": "rule", "other": "rule"}, NOW + 60 * number))
            due = [DUE._replace(at=NOW + 60 * turn) for turn in range(1, 6)]
            return [asked_again(partial(result, stores.values, one)) for one in due]

    with ThreadPoolExecutor(6) as several:
        results = [one for several_of_one in several.map(steward, range(6)) for one in several_of_one]

    assert 1 <= results.count(Result.PUSHED) == store.sizes("reports").ready <= 5
    assert {Result.PUSHED, Result.SETTLED} == set(results)
    assert NOW + 300 == schedules.marks()["nightly"].settled
    assert ["a"] * results.count(Result.PUSHED) == [payload_id(raw) for raw in drained(store, "reports")]


def payload_id(raw: bytes) -> str:
    return raw.split(b'"uuid":"')[1].split(b'"')[0].decode()


def test_a_queue_of_the_wrong_type_settles_nothing(schedules, built):
    if built.settings.url.startswith("unix"):
        built.client.command("SET", built.queue.keys.ready("reports"), "no list")
        with pytest.raises(StoreError):
            schedules.fire(DUE._replace(lock=Lock("lock", "one", 60.0)))
        built.client.command("DEL", built.queue.keys.ready("reports"))

        assert Result.PUSHED == result(schedules, DUE._replace(lock=Lock("lock", "two", 60.0)))
