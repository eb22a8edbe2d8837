"""A worker of many jobs is stopped, replaced, paused or cut off from its store: nothing is lost or done twice."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.eventually import eventually
from tests.support.meters import counts_in, of_job
from tests.support.pools import Site

BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")


def push(site: Site, mode: str, **data: Any) -> str:
    return site.push(mode, name="beside", **data)


def running(site: Site, count: int = 5) -> None:
    """So many jobs run until ``let_end``."""
    for number in range(count):
        push(site, "until", gate=str(site.path / "gate"), tag=str(number), maxTries=1)


def have_begun(site: Site, count: int = 5) -> None:
    eventually(lambda: count == len(site.trail(event="start", mode="until")))


def let_end(site: Site) -> None:
    (site.path / "gate").touch()


def ended_once(site: Site, count: int = 5) -> bool:
    """Whether each has ended; none may have begun twice."""
    starts = site.trail(event="start", mode="until")
    assert len(starts) == len({line["tag"] for line in starts})
    return count == len(site.trail(event="end", mode="until"))


def is_drained(pool: Any) -> None:
    eventually(lambda: any("draining" in title for title in pool.titles().values()))


def test_a_stop_lets_the_jobs_end_that_run_and_begins_no_other(site):
    running(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        pool.signal(signal.SIGTERM)
        is_drained(pool)
        push(site, "ok")
        let_end(site)
        assert 0 == pool.wait()

    assert ended_once(site)
    assert [] == site.trail(mode="ok")
    assert 1 == site.queue.size()


def test_after_the_stop_timeout_all_go_back_uncounted(site):
    running(site)
    with site.pool(*BESIDE, "--stop-timeout", "1") as pool:
        have_begun(site)
        pool.signal(signal.SIGTERM)
        pool.wait()
    let_end(site)
    with site.pool(*BESIDE):
        eventually(lambda: 5 == len(site.trail(event="end", mode="until")))

    assert [1] * 10 == [line["attempt"] for line in site.trail(event="start", mode="until")]
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.by_turns("how")
@pytest.mark.parametrize("how", ["restart", "reload"])
def test_a_new_generation_takes_over_and_the_old_jobs_end_once(site, how):
    running(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        if how == "restart":
            site.run("restart", *site.where)
        else:
            pool.signal(signal.SIGHUP)
        is_drained(pool)
        let_end(site)
        eventually(lambda: ended_once(site))
        push(site, "ok")
        [new] = eventually(lambda: site.trail(event="end", mode="ok"))

    assert new["pid"] not in {line["pid"] for line in site.trail(mode="until")}


def test_a_paused_pool_begins_no_job_and_those_that_run_end(site):
    running(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        site.run("pause", *site.where, "default")
        eventually(lambda: "worker paused" in pool.log())
        push(site, "ok")
        let_end(site)
        eventually(lambda: ended_once(site))
        eventually(lambda: 1 == site.queue.size())
        assert [] == site.trail(mode="ok")
        site.run("continue", *site.where, "default")
        eventually(lambda: site.trail(event="end", mode="ok"))


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_maintenance_holds_the_next_jobs_back(site):
    running(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        site.run("down", *site.where)
        eventually(lambda: "worker paused" in pool.log())
        push(site, "ok")
        let_end(site)
        eventually(lambda: ended_once(site))
        eventually(lambda: 1 == site.queue.size())
        site.run("up", *site.where)
        eventually(lambda: site.trail(event="end", mode="ok"))


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_each_worker_takes_as_many_jobs_as_max_jobs_says(site):
    for number in range(20):
        push(site, "ok", tag=str(number))
    with site.pool(*BESIDE, "--max-jobs", "5"):
        eventually(lambda: 20 == len(site.trail(event="end")))
        eventually(lambda: 0 == site.queue.size())

    pids = [line["pid"] for line in site.trail(event="start")]
    assert [5] * 4 == [pids.count(pid) for pid in dict.fromkeys(pids)]


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_max_time_lets_the_jobs_end(site):
    running(site)
    with site.pool(*BESIDE, "--max-time", "1") as pool:
        have_begun(site)
        is_drained(pool)
        let_end(site)
        eventually(lambda: ended_once(site))
        push(site, "ok")
        eventually(lambda: site.trail(event="end", mode="ok"))


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_a_worker_that_has_grown_leaves_once_its_jobs_have_ended(site):
    running(site)
    with site.pool(*BESIDE, "--memory", "+30") as pool:
        have_begun(site)
        site.push("eat", mb=60)
        is_drained(pool)
        let_end(site)
        eventually(lambda: ended_once(site))
        push(site, "ok")
        [new] = eventually(lambda: site.trail(event="end", mode="ok"))

    assert new["pid"] not in {line["pid"] for line in site.trail(mode="until")}


def test_jobs_that_end_while_the_store_is_away_are_done_once(away, own_server):
    site = away
    running(site)
    push(site, "when", gate=str(site.path / "gate"), then="raise", tag="raises", maxTries=2)
    with site.pool(*BESIDE):
        have_begun(site)
        own_server.kill()
        let_end(site)
        eventually(lambda: ended_once(site))
        own_server.start()
        eventually(lambda: 1 == site.queue.stores.failed.count())
        eventually(lambda: 0 == site.queue.size())

    assert [1, 2] == [line["attempt"] for line in site.trail(event="start", tag="raises")]


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_a_stop_while_the_store_is_away_lets_all_jobs_end(away, own_server):
    """Also those that run on when the first of them has ended, which nobody can settle."""
    site = away
    for number in range(3):
        push(site, "until", gate=str(site.path / f"gate {number}"), tag=str(number), maxTries=1)
    with site.pool(*BESIDE) as pool:
        have_begun(site, 3)
        own_server.kill()
        pool.signal(signal.SIGTERM)
        is_drained(pool)
        for number in range(3):
            (site.path / f"gate {number}").touch()
            eventually(lambda number=number: site.trail(event="end", tag=str(number)))
        own_server.start()
        pool.wait()

    assert ended_once(site, 3)
    with site.pool(*BESIDE):
        push(site, "ok")
        eventually(lambda: site.trail(event="end", mode="ok"))
        eventually(lambda: 0 == site.queue.size())
    assert ended_once(site, 3)


@pytest.mark.thorough("faults/test_redis_faults.py cuts connections again and again")
def test_cut_connections_cost_no_job(site, server):
    with site.pool(*BESIDE):
        for number in range(30):
            push(site, "sleep", seconds=0.05, tag=str(number))
            if number % 5 == 0:
                for client in server.client_list():
                    if int(client["id"]) != server.client_id():
                        try:
                            server.client_kill_filter(_id=client["id"])
                        except redis.ResponseError:
                            continue  # it is gone by now
        eventually(lambda: 30 == len({line["tag"] for line in site.trail(event="end")}))
        eventually(lambda: 0 == site.queue.size())

    assert 30 == len(site.trail(event="start"))
    assert 0 == site.queue.stores.failed.count()


@pytest.mark.thorough("test_deaths_side_by_side.py kills workers, and test_meters.py counts")
def test_many_quick_jobs_are_all_done_and_counted_while_their_workers_are_killed(site):
    for number in range(300):
        push(site, "sleep", seconds=0.02, tag=str(number))
    with site.pool("--workers", "2", *BESIDE[2:]) as pool:
        for done in (50, 120, 190):
            eventually(lambda done=done: done <= len(site.trail(event="end")))
            os.kill(eventually(pool.workers)[0], signal.SIGKILL)
        eventually(lambda: 0 == site.queue.size(), within=60)
        counted = partial(of_job, name="beside")
        eventually(lambda: 300 == counted(counts_in(Path(pool.runtime))).done)
        counts = counted(counts_in(Path(pool.runtime)))

    assert 300 == len({line["tag"] for line in site.trail(event="end")})
    assert (300, 0) == (counts.done, counts.failed)
    # Each of the three kills may come between a job's begin on the board and its first line.
    assert len(site.trail(event="start")) + 3 >= counts.ended - counts.given_back


@pytest.mark.thorough("a worker of one job at a time leaves for the same reasons")
def test_fewer_workers_let_their_jobs_end(site):
    running(site, 20)
    with site.pool("--workers", "2", *BESIDE[2:]) as pool:
        have_begun(site, 20)
        site.run("scale", "--runtime-dir", pool.runtime, "1")
        is_drained(pool)
        let_end(site)
        eventually(lambda: ended_once(site, 20))
        eventually(lambda: 1 == len(pool.workers()))
