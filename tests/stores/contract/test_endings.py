"""The end of a job with what follows from it: an outcome for Laravel, and the release of its unique locks."""

from __future__ import annotations

import pytest

from queuepool.payload.lease import Ending, Lock, Outcome, Unlock
from tests.support.eventually import eventually
from tests.support.samples import new_jobs, payload
from tests.support.store_contract import RETRY_AFTER, THEIRS, drained, record, reserved, state

pytestmark = pytest.mark.usefixtures("at")

OUTCOME = Outcome("outcomes", payload("outcome"))
LOCK = Lock("laravel_unique_job:app.jobs.sync:7", "owner", 60.0)


def locked(store, identity: str = "holder") -> None:
    assert store.push("locks", new_jobs(payload(identity)), 0.0, LOCK)


def is_free(store) -> bool:
    """Whether another job gets the lock; it keeps it."""
    return store.push("locks", new_jobs(payload("other")), 0.0, LOCK._replace(owner="another"))


def ended_by(store, lease, ending: Ending, fails: bool) -> bool:
    return store.fail(lease, "a", record(lease), ending) if fails else store.finish(lease, ending)


@pytest.mark.parametrize("fails", [False, True])
def test_an_outcome_is_pushed_once_with_the_end_of_its_job(built, fails):
    lease = reserved(built.queue, payload("a"))[0]

    assert ended_by(built.queue, lease, Ending(OUTCOME), fails)
    assert not ended_by(built.queue, lease, Ending(OUTCOME), fails)
    assert [] == drained(built.queue)
    assert 1 == built.queue.sizes("outcomes").ready
    assert fails == built.failed.count()


@pytest.mark.parametrize("fails", [False, True])
def test_a_late_end_pushes_nothing_and_releases_nothing(built, at, fails):
    late = reserved(built.queue, payload("a"))[0]
    locked(built.queue)
    at.advance(RETRY_AFTER + 1)
    [theirs] = built.queue.reserve(["default"], THEIRS, 1).leases
    before = state(built)

    assert not ended_by(built.queue, late, Ending(OUTCOME, (Unlock(LOCK.name, LOCK.owner),)), fails)
    assert before == state(built)
    assert 0 == built.queue.sizes("outcomes").total
    assert not is_free(built.queue)
    assert built.queue.finish(theirs, Ending())


def test_an_outcome_wakes_a_worker_that_waits(store):
    lease = reserved(store, payload("a"))[0]
    store.finish(lease, Ending(OUTCOME))

    store.wait(["outcomes"], 5.0)

    assert 1 == len(store.reserve(["outcomes"], THEIRS, 1).leases)


@pytest.mark.by_turns("owner")
@pytest.mark.every_store("connection")
@pytest.mark.parametrize("owner", [LOCK.owner, ""])
@pytest.mark.parametrize("fails", [False, True])
def test_a_lock_is_released_with_the_end_of_its_job(store, fails, owner):
    lease = reserved(store, payload("a"))[0]
    locked(store)
    assert not is_free(store)

    ended_by(store, lease, Ending(unlocks=(Unlock(LOCK.name, owner),)), fails)
    assert is_free(store)


def test_a_lock_that_another_job_holds_stays(store):
    lease = reserved(store, payload("a"))[0]
    locked(store)

    store.finish(lease, Ending(unlocks=(Unlock(LOCK.name, "somebody else"),)))
    assert not is_free(store)


def test_a_lock_is_kept_through_a_retry(store):
    lease = reserved(store, payload("a"))[0]
    locked(store)

    store.release(lease, 0.0, "a")
    assert not is_free(store)


def test_of_two_unique_pushes_one_is_stored_and_a_lock_ends_by_itself(store):
    short = LOCK._replace(seconds=0.01)
    assert store.push("default", new_jobs(payload("a")), 0.0, short)
    assert [payload("a")] == [lease.receipt.replace(b'"attempts":1', b'"attempts":0') for lease in taken(store)]
    # By the store's own clock, which the test cannot move for a lock.
    eventually(lambda: store.push("default", new_jobs(payload("b")), 0.0, short))


def taken(store) -> list:
    return store.reserve(["default"], THEIRS, 10).leases


def test_a_delayed_unique_job_is_due_later_and_holds_its_lock_at_once(store, at):
    assert store.push("default", new_jobs(payload("a")), 5.0, LOCK)
    assert not is_free(store)
    assert [] == taken(store)
    at.advance(6.0)
    assert 1 == len(taken(store))


def test_locks_are_released_before_a_job_runs(store):
    locked(store)
    store.unlock([Unlock(LOCK.name, LOCK.owner), Unlock("laravel_unique_job:none")])
    assert is_free(store)
