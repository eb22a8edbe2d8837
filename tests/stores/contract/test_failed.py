"""Failed jobs are recorded, listed, retried and dropped."""

from __future__ import annotations

import json

import pytest

from queuepool.stores.records import FailedJob
from tests.support.samples import attempted, new_jobs, payload
from tests.support.store_contract import EMPTY, drained, failed_job, record, reserved

pytestmark = pytest.mark.usefixtures("at")


def test_a_failed_job_is_recorded_and_ended(built, at):
    [lease] = reserved(built.queue, payload("a"))
    # A table of Laravel's has no column for it, so only the payload can tell.
    attempts = json.loads(lease.receipt)["attempts"] or None

    assert built.queue.fail(lease, "a", record(lease))
    facts = FailedJob(
        id="a",
        name="app.ok",
        queue="default",
        connection="default",
        attempts=attempts,
        payload=lease.receipt.decode(),
        exception="RuntimeError: told to",
        failed_at=at.now,
    )
    assert facts == built.failed.get("a")
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
    built.queue.push("default", new_jobs(payload("b")))

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
    keys = [failed_job(built, name).key for name in "abc"]
    never = keys[0]._replace(id="never", mark="0")

    assert 2 == built.failed.drop([keys[0], keys[2], never])
    assert (["b"], 1) == ([found.id for found in built.failed.page()], built.failed.count())
    assert None is built.failed.get("a")
    assert 0 == built.failed.drop([])


def test_a_job_that_failed_again_has_a_record_that_is_not_dropped_for_its_last_one(built, at):
    before = failed_job(built)
    assert 1 == built.failed.drop([before.key])
    at.advance(1.0)
    again = failed_job(built)

    assert before.id == again.id
    assert 0 == built.failed.drop([before.key])
    assert not built.failed.retry(before)
    assert [again] == built.failed.page()


def test_jobs_that_failed_before_a_moment_are_found(built, at):
    for name in "abc":
        failed_job(built, name)
        at.advance(10.0)

    assert ["a", "b"] == [key.id for key in built.failed.older_than(at.now - 10.0)]
    assert ["a"] == [key.id for key in built.failed.older_than(at.now, count=1)]
