"""Failed jobs are recorded, listed, retried and dropped."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from queuepool.payload.command import Commands
from queuepool.payload.lease import StateRecord
from queuepool.search.bulk import Bulk, OfFailedJobs
from queuepool.search.found import FoundJob
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.pace import StorePace
from queuepool.stores.records import FailedJob, Retrying, Returned
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

    first = built.failed.page(count=2)
    built.failed.drop([first[-1].key])
    failed_job(built, "d")

    assert ["c", "b"] == [found.id for found in first]
    assert ["a"] == [found.id for found in built.failed.page(first[-1].key)]


def test_failed_jobs_of_one_moment_are_listed_once_each(built, at):
    keys = {failed_job(built, f"{number}").key for number in range(7)}
    found, page = [], built.failed.page(count=2)
    while page:
        found += [one.key for one in page]
        page = built.failed.page(found[-1], 2)

    assert (7, keys) == (len(found), set(found))


def test_many_are_retried_in_few_steps_each_once(built, at):
    records = [failed_job(built, name) for name in "abc"]
    never = replace(records[0], id="never", mark="0")
    tracked = StateRecord("b", b'{"state": "queued"}', 60.0)
    jobs = [Retrying(records[0]), Retrying(records[1], tracked), Retrying(never), Retrying(records[0])]

    found = [Returned.DONE, Returned.DONE, Returned.GONE, Returned.GONE]
    assert found == built.failed.retry_all(jobs)
    assert [attempted(payload("a")), attempted(payload("b"))] == drained(built.queue)
    assert ["c"] == [one.id for one in built.failed.page()]
    assert {"b"} == built.values.tracked(["a", "b", "c"])
    assert set() == built.values.tracked([])


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

    assert [True, False, True] == built.failed.drop([keys[0], never, keys[2]])
    assert (["b"], 1) == ([found.id for found in built.failed.page()], built.failed.count())
    assert None is built.failed.get("a")
    assert [] == built.failed.drop([])


def test_a_job_that_failed_again_has_a_record_that_is_not_dropped_for_its_last_one(built, at):
    before = failed_job(built)
    assert [True] == built.failed.drop([before.key])
    at.advance(1.0)
    again = failed_job(built)

    assert before.id == again.id
    assert [False] == built.failed.drop([before.key])
    assert not built.failed.retry(before)
    assert [again] == built.failed.page()


@pytest.mark.parametrize("act", [OfFailedJobs.forget, OfFailedJobs.retry])
def test_what_is_done_with_many_is_counted_for_the_queue_of_each(built, act):
    first, other = failed_job(built, "a"), replace(failed_job(built, "b"), queue="high")
    jobs = [FoundJob.failed(one, Commands()) for one in (first, other)]
    built.failed.drop([first.key])
    bulk = Bulk(lambda _: None)
    bulk.run([jobs], partial(act, OfFailedJobs(built, HeldLocks(built.settings), StorePace())))

    assert ({"high": 1}, 1) == (bulk.done.queues, bulk.done.results[Returned.GONE])


def test_jobs_that_failed_before_a_moment_are_found(built, at):
    for name in "abc":
        failed_job(built, name)
        at.advance(10.0)

    assert ["a", "b"] == [key.id for key in built.failed.older_than(at.now - 10.0)]
    assert ["a"] == [key.id for key in built.failed.older_than(at.now, count=1)]
