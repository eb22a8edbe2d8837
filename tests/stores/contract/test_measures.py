"""What the steward measures of a queue: cheap for any length, with the true age of the next job."""

from __future__ import annotations

import time

import pytest

from queuepool.payload.envelope import Envelope, encode, ready_for
from queuepool.stores.factory import is_redis
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, reserved


def test_an_empty_queue_measures_nothing(built):
    found = built.queue.measure("default")

    assert (0, 0, 0, 0, 0.0, 0.0) == (
        found.ready, found.delayed, found.reserved, found.quarantined, found.oldest, found.overdue,
    )  # fmt: skip
    assert not found.is_at_least


def test_the_jobs_are_counted_by_state(built):
    store = built.queue
    store.quarantine(reserved(store, payload("q"))[0], "odd")
    reserved(store, payload("a"), payload("b"))
    store.push("default", new_jobs(payload("c")), delay=60.0)
    store.push("default", new_jobs(payload("d"), payload("e"), payload("f")))

    found = built.queue.measure("default")

    assert (3, 1, 2, 1) == (found.ready, found.delayed, found.reserved, found.quarantined)
    assert abs(found.now - time.time()) < 60.0


def test_a_job_that_was_released_is_as_old_as_its_release(built):
    """Its database says so; in Redis its payload says that it cannot say."""
    store = built.queue
    _, raw = encode("app.ok", {}, Envelope(created_at=int(time.time()) - 3600))
    [lease] = reserved(store, raw)
    store.release(lease, 0.0, "a")

    found = built.queue.measure("default")
    age = found.oldest if found.oldest is not None else ready_for(found.payload, found.now)

    assert age is None or age < 60.0


@pytest.mark.every_store("database")
def test_a_database_counts_no_further_than_ten_thousand(sql):
    sql.queue.push("default", new_jobs(*[payload("a")] * 10_050))

    found = sql.queue.measure("default")

    assert found.is_at_least
    assert 10_001 == found.ready


@pytest.mark.thorough("test_a_database_counts_no_further_than_ten_thousand")
@pytest.mark.every_store("database")
def test_what_is_ready_behind_ten_thousand_delayed_jobs_is_counted(sql):
    sql.queue.push("default", new_jobs(*[payload("a")] * 10_050), delay=600.0)
    sql.queue.push("default", new_jobs(*[payload("b")] * 5))
    sql.queue.reserve(["default"], OURS, 2)

    found = sql.queue.measure("default")

    assert (3, 2, True) == (found.ready, found.reserved, found.is_at_least)
    assert found.delayed >= 10_000


def test_in_redis_a_delayed_job_that_is_not_made_ready_is_overdue(built, at):
    if not is_redis(built.settings.url):
        pytest.skip("a database makes nothing ready: what is due may be taken")
    built.queue.push("default", new_jobs(payload("a")), delay=1.0)
    at.advance(11.0)

    assert pytest.approx(10.0) == built.queue.measure("default").overdue
