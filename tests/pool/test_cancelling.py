"""One job is cancelled, wherever it is: waiting, delayed or running; each other one is left alone."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from queuepool.board.cancelling import RunningHere, order, running_on
from queuepool.board.lane_layout import HEAD, PLAIN
from queuepool.board.runtime_dir import boards_in
from queuepool.jobs.cancelling import CancelOutcome
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site
from tests.support.processes import halted

ONE = ("--workers", "1", "--modules", "tests.support.cancelapp")
TWO = ("--workers", "2", "--modules", "tests.support.cancelapp")


def runtime(site: Site) -> tuple[str, ...]:
    return *site.where, "--runtime-dir", str(site.path / "run")


def push(site: Site, name: str, delay: float = 0, **data: object) -> str:
    return site.queue.push(name, data, delay=delay)


def cancel(site: Site, job_id: str, *flags: str, check: bool = True) -> str:
    """What the command says."""
    found = site.run("cancel", job_id, *flags, *runtime(site), check=check)
    return found.stdout + found.stderr


def outcome(site: Site, job_id: str, *flags: str) -> str:
    found = site.run("cancel", job_id, "--json", *flags, *runtime(site), check=False)
    return str(json.loads(found.stdout)["outcome"])


def started(site: Site, job_id: str, attempt: int = 1) -> None:
    eventually(lambda: site.trail(event="start", id=job_id, attempt=attempt))


def failed(site: Site, job_id: str) -> str:
    """The recorded error."""
    found = site.queue.stores.failed.get(job_id)
    return found.exception.partition("\n")[0] if found else ""


@contextmanager
def told(site: Site, pool: RunningPool, job_id: str, *flags: str) -> Iterator[list[str]]:
    """The coroutine has heard that it is cancelled; at the end its outcome is in the list.

    The master is halted until then: it kills a worker that says nothing for a second, as one on a busy machine may.
    """
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(outcome(site, job_id, *flags)))
    with halted(pool.pid):
        asking.start()
        eventually(lambda: site.trail(event="cancelled"))
    yield said
    asking.join()


def is_empty(site: Site) -> bool:
    return site.queue.sizes("default").total == 0


@pytest.mark.by_turns("delay")
@pytest.mark.parametrize("delay", [0, 300])
def test_a_job_that_waits_is_taken_out_and_its_hook_is_called(site, delay):
    others = [push(site, "quick", n=n, delay=300) for n in range(3)]
    job_id = push(site, "stays", delay=delay)
    with site.pool(*ONE, "--queue", "other"):
        assert "taken out of queue default" in cancel(site, job_id)
        eventually(lambda: site.trail(event="after_failed", error="Cancelled"))

    assert failed(site, job_id).startswith("Cancelled: stays: cancelled by ")
    assert (len(others), 0) == (site.queue.sizes("default").delayed, site.queue.sizes("default").ready)
    assert [] == site.trail(event="start")


@pytest.mark.thorough("a line of the log; the first test has a pool that knows the job, and calls its hook")
def test_a_pool_that_does_not_know_the_job_says_that_its_hook_is_not_called(site):
    job_id = push(site, "stays")
    with site.pool("--workers", "1", "--queue", "other") as pool:
        cancel(site, job_id)
        said = "after_failed is not called for a job of queue default: this pool knows no job stays"
        eventually(lambda: said in pool.log())


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["sleep", "gil"])
def test_a_plain_function_is_ended_with_its_worker_and_never_retried(site, how):
    job_id = push(site, "stays", how=how)
    with site.pool(*ONE) as pool:
        started(site, job_id)
        assert "was cancelled while it ran" in cancel(site, job_id)
        eventually(lambda: site.trail(event="after_failed", error="Cancelled"))
    log = pool.log()  # the steward may say it after the next worker has called the hook

    assert failed(site, job_id).startswith("Cancelled: stays (attempt 1): cancelled by ")
    assert is_empty(site)
    assert 1 == len(site.trail(event="start"))
    assert "job cancelled" in log
    assert "worker died" not in log


def test_a_coroutine_clears_up_first_and_its_worker_goes_on(site):
    job_id = push(site, "awaits")
    with site.pool(*ONE) as pool:
        started(site, job_id)
        workers = pool.workers()
        with halted(pool.pid):  # as in ``told``
            assert "was cancelled while it ran" in cancel(site, job_id)
        assert site.trail(event="cancelled", told=True)
        assert site.trail(event="finally")
        eventually(lambda: site.trail(event="after_failed", error="Cancelled"))
        assert workers == pool.workers()

    assert failed(site, job_id).startswith("Cancelled: awaits (attempt 1): cancelled by ")
    assert is_empty(site)


@pytest.mark.thorough("the tests around end each of these jobs in its own way")
@pytest.mark.parametrize("way", [("--workers", "4"), ("--workers", "1", "--concurrency", "4")])
def test_the_board_says_of_which_jobs_no_answer_is_needed(site, way):
    ids = {name: push(site, name) for name in ("stays", "awaits", "asks", "wraps")}
    with site.pool(*ONE[2:], *way) as pool, boards_in([site.path / "run" / "default"]) as boards:
        for job_id in ids.values():
            started(site, job_id)
        # Side by side a function in a thread cannot be ended alone, whatever it returns.
        said = {"stays": 1, "awaits": 0, "asks": 0, "wraps": int("--concurrency" in way)}
        eventually(lambda: said == {found.job.job: is_plain(found) for found in running_on(boards[0])})
        assert "cancelled" == outcome(site, ids["wraps"])
        assert [] != site.trail(event="finally") or "--concurrency" in way
        pool.signal(signal.SIGQUIT)
        assert 0 == pool.wait()


def is_plain(found: RunningHere) -> int:
    lanes = found.slot.lanes
    return int(lanes.wholes[HEAD + PLAIN * lanes.count + found.job.number] if lanes else found.slot.is_plain)


def test_a_coroutine_that_swallows_it_and_returns_was_cancelled_all_the_same(site):
    job_id = push(site, "awaits", swallows=True)
    with site.pool(*ONE):
        started(site, job_id)
        assert "cancelled" == outcome(site, job_id)

    assert failed(site, job_id).startswith("Cancelled: ")


def test_a_coroutine_that_takes_too_long_is_ended_after_the_grace(site):
    job_id = push(site, "awaits", lingers=60.0)
    with site.pool(*ONE) as pool:
        started(site, job_id)
        workers = pool.workers()
        with told(site, pool, job_id, "--grace", "2") as said:
            eventually(lambda: said)
        assert ["cancelled"] == said
        assert [] == site.trail(event="finally")
        eventually(lambda: pool.workers() and workers != pool.workers())

    assert failed(site, job_id).startswith("Cancelled: ")


def test_a_function_that_asks_ends_by_itself_and_is_not_released(site):
    job_id = push(site, "asks")
    with site.pool(*ONE) as pool:
        started(site, job_id)
        workers = pool.workers()
        with halted(pool.pid):  # as in ``told``
            assert "cancelled" == outcome(site, job_id)
        assert site.trail(event="stopping", told=True)
        assert workers == pool.workers()

    assert failed(site, job_id).startswith("Cancelled: ")
    assert is_empty(site)


@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["stays", "awaits"])
def test_a_job_that_is_requeued_runs_again_and_the_attempt_does_not_count(site, name):
    job_id = push(site, name)
    with site.pool(*ONE):
        started(site, job_id)
        assert "is back in queue default" in cancel(site, job_id, "--requeue")
        eventually(lambda: 2 == len(site.trail(event="start")))
        assert "cancelled" == outcome(site, job_id)

    assert [1, 1] == [line["attempt"] for line in site.trail(event="start")]


@pytest.mark.thorough("rare: an order that comes too late; one that comes in time is carried out above")
@pytest.mark.parametrize("way", [(), ("--concurrency", "2")])
def test_a_coroutine_that_is_requeued_and_returns_all_the_same_is_done(site, way):
    job_id = push(site, "awaits", swallows=True)
    with site.pool(*ONE, *way):
        started(site, job_id)
        assert "over" == outcome(site, job_id, "--requeue")
        eventually(lambda: is_empty(site))

    assert ("", 1) == (failed(site, job_id), len(site.trail(event="start")))


def test_what_there_is_to_say_of_a_job_that_is_not_cancelled(site):
    done = push(site, "quick", n=1)
    with site.pool(*ONE):
        eventually(lambda: site.trail(event="done"))
        eventually(lambda: is_empty(site))
        assert "neither waits nor runs here" in cancel(site, done, check=False)
        later = push(site, "quick", n=2, delay=300)
        assert "there is no attempt to interrupt" in cancel(site, later, "--requeue", check=False)
        assert "cancelled" == outcome(site, later)
        assert "is over already" in cancel(site, later, check=False)


def test_a_job_that_somebody_else_has_reserved_is_not_touched(site):
    job_id = push(site, "stays")
    [lease] = site.queue.stores.queue.reserve(["default"], site.queue.stores.queue.join(), 1).leases
    assert "reserved by a worker of no pool" in cancel(site, job_id, check=False)

    assert [True] == site.queue.stores.queue.delete([lease])


def test_from_python(site, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(site.path))
    job_id, later = push(site, "stays"), push(site, "quick", n=1, delay=300)
    with site.pool(*ONE):
        started(site, job_id)
        eventually(lambda: site.queue.stores.control.pools())
        assert CancelOutcome.CANCELLED == site.queue.cancel(later).outcome
        assert site.queue.cancel(job_id)
        assert not site.queue.cancel(job_id)


@pytest.mark.parametrize("who", ["master", "steward", "worker"])
def test_whoever_dies_meanwhile_the_job_is_cancelled(site, who):
    """It obeys for half a second, in which one of those that carry the order out is killed."""
    job_id = push(site, "awaits", lingers=1.0)
    with site.pool(*ONE) as pool:
        started(site, job_id)
        victims = {"master": [pool.pid], "steward": [pool.steward()], "worker": pool.workers()}[who]
        with told(site, pool, job_id) as said:
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            eventually(lambda: failed(site, job_id).startswith("Cancelled: "))
        eventually(lambda: is_empty(site))
        if who == "master":
            with suppress(AssertionError):
                pool.wait()

    assert ["cancelled"] == said
    assert 1 == len(site.trail(event="start"))


@pytest.mark.parametrize("count", [90, pytest.param(240, marks=pytest.mark.thorough("the same at more moments"))])
def test_many_are_cancelled_at_any_moment_and_each_other_job_runs_unharmed(site, count):
    """Ended at once, so that now and then the next job is hit: it goes back, and its attempt does not count."""
    ids = [push(site, "quick", n=n, seconds=0.01 if n else 30.0) for n in range(count)]  # the first one is always hit
    victims = range(0, count, 3)
    with site.pool(*TWO), boards_in([site.path / "run" / "default"]) as boards:
        [board] = boards
        left = {ids[n] for n in victims}
        while left and not is_empty(site):
            for found in list(running_on(board)):
                if found.job.id in left and order(found, by="tests", grace=0.0, requeue=False):
                    left.discard(found.job.id)
        eventually(lambda: is_empty(site), 60)

    ran, done = site.trail(event="ran"), {line["n"] for line in site.trail(event="done")}
    cancelled = {n for n in range(count) if failed(site, ids[n])}
    assert cancelled <= set(victims)
    assert all(failed(site, ids[n]).startswith("Cancelled: ") for n in cancelled)
    assert set(range(count)) == done | cancelled
    assert {1} == {line["attempt"] for line in ran}
    assert 0 in cancelled
