"""One of several jobs in a worker is cancelled: its neighbours go on, or go back as if they had not begun."""

from __future__ import annotations

import pytest

from queuepool.board.cancelling import order, running_on
from queuepool.board.runtime_dir import boards_in
from tests.pool.test_cancelling import failed, is_empty, outcome, push, started
from tests.support.eventually import eventually
from tests.support.pools import Site
from tests.support.processes import halted

ONE = ("--workers", "1", "--concurrency", "4", "--modules", "tests.support.cancelapp")


def neighbours(site: Site, count: int = 2) -> list[str]:
    """Jobs that run until ``open_gate``."""
    ids = [push(site, "neighbour", n=n) for n in range(count)]
    for job_id in ids:
        started(site, job_id)
    return ids


def open_gate(site: Site) -> None:
    site.trail_file.with_name(f"{site.trail_file.name}.gate").touch()


def all_done(site: Site, count: int = 2) -> None:
    open_gate(site)
    eventually(lambda: set(range(count)) == {line["n"] for line in site.trail(event="done")})
    eventually(lambda: is_empty(site))
    assert {1} == {line["attempt"] for line in site.trail(event="start") if "n" in line}


@pytest.mark.by_turns("swallows")
@pytest.mark.parametrize("swallows", [False, True])
def test_a_coroutine_ends_and_its_neighbours_notice_nothing(site, swallows):
    with site.pool(*ONE) as pool:
        neighbours(site)
        job_id = push(site, "awaits", swallows=swallows)
        started(site, job_id)
        with halted(pool.pid):  # it kills a worker that says nothing for a second, as one on a busy machine may
            assert "cancelled" == outcome(site, job_id)
        assert site.trail(event="finally")
        eventually(lambda: site.trail(event="after_failed", error="Cancelled"))
        all_done(site)

    assert failed(site, job_id).startswith("Cancelled: awaits (attempt 1): cancelled by ")
    assert 3 == len(site.trail(event="start"))


@pytest.mark.by_turns("name")
@pytest.mark.parametrize("name", ["stays", "blocks"])
def test_one_that_cannot_end_alone_is_ended_with_its_worker_and_the_others_go_back(site, name):
    with site.pool(*ONE):
        neighbours(site)
        job_id = push(site, name)
        started(site, job_id)
        eventually(lambda: name == "stays" or site.trail(event="blocks"))
        assert "cancelled" == outcome(site, job_id, "--grace", "0.5")
        eventually(lambda: site.trail(event="after_failed", error="Cancelled") or name == "blocks")
        all_done(site)

    assert failed(site, job_id).startswith(f"Cancelled: {name} (attempt 1): cancelled by ")
    assert 5 == len(site.trail(event="start"))  # each neighbour twice


def test_one_that_is_requeued_runs_again_beside_them(site):
    with site.pool(*ONE):
        neighbours(site)
        job_id = push(site, "awaits")
        started(site, job_id)
        assert "requeued" == outcome(site, job_id, "--requeue")
        eventually(lambda: 2 == len(site.trail(event="start", id=job_id, attempt=1)))
        assert "cancelled" == outcome(site, job_id)
        all_done(site)


@pytest.mark.thorough("random moments of what the tests above do one by one")
def test_many_are_cancelled_at_any_moment_and_the_others_run_unharmed(site):
    """Each lane has many jobs one after the other; an order is for one of them."""
    open_gate(site)
    count = 240
    ids = [push(site, "neighbour", n=n, seconds=0.01 if n else 30.0) for n in range(count)]  # the first is always hit
    with site.pool(*ONE), boards_in([site.path / "run" / "default"]) as boards:
        [board] = boards
        left = {ids[n] for n in range(0, count, 3)}
        while left and not is_empty(site):
            for found in list(running_on(board)):
                if found.job.id in left and order(found, by="tests", grace=10.0, requeue=False):
                    left.discard(found.job.id)
        eventually(lambda: is_empty(site), 60)

    done = {line["n"] for line in site.trail(event="done")}
    cancelled = {n for n in range(count) if failed(site, ids[n])}
    assert 0 in cancelled
    assert set() == {n for n in cancelled if n % 3}
    assert set(range(count)) == done | cancelled
    assert {1} == {line["attempt"] for line in site.trail(event="start")}
