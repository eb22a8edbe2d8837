"""A job that waits is found by its bytes, and taken out of its queue in one step with its record."""

from __future__ import annotations

from contextlib import closing

import pytest

from queuepool.events import JobCancelled, JobFailed
from queuepool.events.listeners import LISTENERS
from queuepool.jobs.cancelling import Canceller, CancelOutcome, CancelWish
from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending
from queuepool.settlement.cancelled import find_waiting
from queuepool.settlement.states import States
from queuepool.settlement.verdict import NOT_RUN
from queuepool.stores.factory import Stores
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import OURS, record, state


@pytest.fixture
def queue(built: Stores):
    with closing(Queue(built.settings)) as found:
        yield found


def waiting(built: Stores, queue: str = "default") -> set[str]:
    """The ids of the jobs that wait there."""
    page = built.queue.walk(queue, ("ready", "delayed")).page(100)
    return {decode(job.payload, job.attempts).id for job in page if job.shelf != "reserved"}


def cancel(built: Stores, job_id: str, **more: object) -> CancelOutcome:
    return Canceller(built, ["high", "default"], []).cancel(CancelWish(job_id, "ana@web", **more)).outcome


def push(built: Stores, *ids: str, queue: str = "default", delay: float = 0.0) -> None:
    built.queue.push(queue, new_jobs(*map(payload, ids)), delay)


def test_ready_and_delayed_jobs_are_found_and_reserved_ones_are_not(built):
    push(built, "a-1", "a-2", "b-3")
    built.queue.reserve(["default"], OURS, 1)
    push(built, "a-4", delay=60)
    push(built, "a-5", queue="high")

    found = {job_id: find_waiting(built, "default", job_id) for job_id in ("a-1", "a-2", "b-3", "a-4", "a-5")}
    assert {"a-2", "b-3", "a-4"} == {job_id for job_id, one in found.items() if one}
    there = find_waiting(built, "high", "a-5")
    assert there
    assert ("a-5", "high") == (there.payload.id, there.lease.queue)


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("job_id", ["a%1", 'a"1', "ä", "a\\1"])
def test_an_id_that_json_writes_otherwise_is_found(built, job_id):
    push(built, "a1", "a-1", job_id)
    found = find_waiting(built, "default", job_id)

    assert found
    assert job_id == found.payload.id
    assert find_waiting(built, "default", "a_1") is None


@pytest.mark.thorough("2,500 jobs; test_exactly_this_job_is_taken_out_and_recorded")
def test_a_long_queue_is_read_to_its_end(built):
    push(built, *(f"job-{number}-" for number in range(2500)))

    assert CancelOutcome.CANCELLED == cancel(built, "job-2499-")
    assert 2499 == built.queue.sizes("default").ready


@pytest.mark.parametrize("delay", [0.0, 60.0])
def test_exactly_this_job_is_taken_out_and_recorded(built, delay):
    push(built, "a", "b", "c", delay=delay)

    assert CancelOutcome.CANCELLED == cancel(built, "b")
    assert {"a", "c"} == waiting(built)
    assert 2 == built.queue.sizes("default").total
    [failed] = built.failed.page()
    assert ("b", "default", "app.ok") == (failed.id, failed.queue, failed.name)
    assert failed.exception.startswith("Cancelled: app.ok: cancelled by ana@web while it waited")


def test_twice_is_over(built):
    push(built, "a")

    assert [CancelOutcome.CANCELLED, CancelOutcome.OVER] == [cancel(built, "a"), cancel(built, "a")]


def test_a_job_that_a_worker_took_meanwhile_stays_with_it(built):
    push(built, "a")
    found = find_waiting(built, "default", "a")
    assert found
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    before = state(built)

    assert not built.queue.cancel(found.lease, "a", record(found.lease), Ending())
    assert before == state(built)
    assert [True] == built.queue.delete([lease])


def test_its_lock_is_free_again_and_its_tracked_state_says_so(built, queue):
    job_id = queue.push("app.ok", unique_id="one", track=60, delay=60)
    assert not queue.push("app.ok", unique_id="one")

    assert CancelOutcome.CANCELLED == cancel(built, job_id)
    found = queue.job(job_id)
    assert found
    assert ("cancelled", True) == (found.state, found.is_over)
    assert queue.push("app.ok", unique_id="one")


def test_a_state_that_its_pool_keeps_of_it_says_so_and_none_is_kept_of_another(built, queue):
    push(built, "a", "b")
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    kept = States(60.0).released(decode(lease.receipt), "default", NOT_RUN, 60.0, None)
    assert built.queue.release(lease, 60.0, "a", state=kept)

    assert [CancelOutcome.CANCELLED] * 2 == [cancel(built, "a"), cancel(built, "b")]
    assert ["cancelled", None] == [state and state.state for state in map(queue.job, "ab")]


def test_it_is_told_like_a_failure(built, monkeypatch):
    told = []
    monkeypatch.setattr(LISTENERS, "emit", told.append)
    push(built, "a")
    cancel(built, "a")

    assert [(JobCancelled, "a"), (JobFailed, "a")] == [(type(event), event.job.id) for event in told]


def test_a_retry_brings_it_back(built):
    push(built, "a")
    cancel(built, "a")
    [failed] = built.failed.page()

    assert built.failed.retry(failed)
    assert {"a"} == waiting(built)


def test_with_requeue_it_stays_where_it_is(built):
    push(built, "a")
    before = state(built)

    assert CancelOutcome.WAITS == cancel(built, "a", requeue=True)
    assert before == state(built)
