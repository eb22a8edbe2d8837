"""Who follows a tracked job that is dropped, or moved to another queue, learns of it in the same step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from queuepool.jobs.client import Queue
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Ending
from queuepool.search.bulk import Bulk, OfWaitingJobs
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.settlement.held_locks import HeldLocks
from queuepool.settlement.states import States
from queuepool.settlement.verdict import NOT_RUN
from queuepool.stores.factory import Stores
from tests.support.samples import payload, record
from tests.support.store_contract import OURS, reserved


@pytest.fixture
def queue(built: Stores):
    with closing(Queue(built.settings)) as found:
        yield found


def taken_out(queue: Queue, act: Callable[..., object]) -> None:
    """Do it with all waiting jobs of the queue, as a verb does."""
    look = Look(queue.stores, Filter())
    found = look.waiting("default", ("ready", "delayed"))
    acts = OfWaitingJobs(look, HeldLocks(queue.settings), "default", found)
    Bulk(lambda _: None).run(found.pages(), partial(act, acts))


def drop(queue: Queue) -> None:
    taken_out(queue, OfWaitingJobs.drop)


def clear(queue: Queue) -> None:
    queue.clear()


def move(queue: Queue) -> None:
    taken_out(queue, lambda acts, jobs: acts.move_to("high", jobs))


@pytest.mark.by_turns("delay")
@pytest.mark.every_store("connection")
@pytest.mark.parametrize("how", [drop, clear])
@pytest.mark.parametrize("delay", [0, 60])
def test_a_tracked_job_that_is_dropped_is_over_for_those_who_follow_it(queue, how, delay):
    plain, followed = queue.push("app.ok", delay=delay), queue.push("app.ok", track=60, delay=delay)
    how(queue)
    found = queue.job(followed)

    assert 0 == queue.size()
    assert found
    assert ("cancelled", "default", True) == (found.state, found.queue, found.is_over)
    assert "app.ok: dropped by " in str(found.error)
    assert queue.job(plain) is None


@pytest.mark.by_turns("uuid")
@pytest.mark.every_store("connection")
@pytest.mark.parametrize("how", [drop, clear])
@pytest.mark.parametrize("uuid", ["a", "b"])
def test_a_job_whose_pool_tracks_it_is_over_as_well(built, queue, how, uuid):
    """Laravel's jobs have a uuid besides their id, by which they are known."""
    [lease] = reserved(built.queue, payload("a", uuid=uuid))
    kept = States(60.0).released(decode(lease.receipt, lease.attempts), "default", NOT_RUN, 60.0, None)
    assert built.queue.release(lease, 60.0, "a", state=kept)
    others = [queue.push("app.ok") for _ in range(3)]
    how(queue)

    assert "cancelled" == queue.job("a").state
    assert 0 == queue.size()
    assert [None] * 3 == [queue.job(one) for one in others]


def test_a_job_that_a_worker_takes_meanwhile_keeps_its_state(built, queue):
    followed = queue.push("app.ok", track=60)
    page = built.queue.walk("default", ("ready",)).page(9)
    built.queue.reserve(["default"], OURS, 1)

    assert [False] == built.queue.drop("default", page, HeldLocks(queue.settings).waiting)
    assert "queued" == queue.job(followed).state


@pytest.mark.parametrize(("delay", "state"), [(0, "queued"), (60, "delayed")])
def test_the_state_of_a_job_names_the_queue_to_which_it_is_moved(queue, delay, state):
    plain, followed = queue.push("app.ok", delay=delay), queue.push("app.ok", track=60, delay=delay)
    before = queue.job(followed)
    move(queue)
    after = queue.job(followed)

    assert (state, "high") == (after.state, after.queue)
    assert (before.name, before.pushed.replace(microsecond=0)) == (after.name, after.pushed.replace(microsecond=0))
    assert queue.job(plain) is None


def test_a_job_that_is_dropped_from_the_quarantine_is_over(built, queue):
    followed = queue.push("app.ok", track=60)
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    assert built.queue.quarantine(lease, "deadly")
    [entry] = built.records.quarantined("default")
    state = HeldLocks(queue.settings).set_aside.state_of("default", entry.payload, None)

    assert built.records.drop_quarantined("default", entry.id, (), state)
    assert "cancelled" == queue.job(followed).state
    assert not built.records.drop_quarantined("default", entry.id, (), state)


def test_a_failed_job_that_is_forgotten_has_failed(built, queue):
    followed = queue.push("app.ok", track=60)
    [lease] = built.queue.reserve(["default"], OURS, 1).leases
    payload_of_it = decode(lease.receipt, lease.attempts)
    failed = States().failed(payload_of_it, "default", NOT_RUN, ValueError("odd"))
    assert built.queue.fail(lease, followed, record(lease, followed), Ending(state=failed))
    keys = [one.key for one in built.failed.page()]

    assert [True] == built.failed.drop(keys, HeldLocks(queue.settings).set_aside)
    assert "failed" == queue.job(followed).state
