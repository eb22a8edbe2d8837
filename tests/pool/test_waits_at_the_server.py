"""On Redis an idle worker has a reserve at the server, which takes a job even if its worker can no longer run it."""

from __future__ import annotations

import signal
import sys
import time

import pytest
import redis

from tests.support import warm
from tests.support.eventually import eventually
from tests.support.pools import RunningPool, Site
from tests.support.processes import go_on, halt, kill

#: a wait that takes longer than a test waits for anything
_LONG = "[connection]\nblock_for = 60\nretry_after = 600\n"


def taken_by_a_halted_worker(site: Site, pool: RunningPool, **data: object) -> int:
    """Its worker waits, and so is halted with a job that the server has given it meanwhile; returns its pid."""
    [worker] = eventually(pool.workers)
    eventually(lambda: is_halted_in_its_wait(site, worker))
    site.push("ok", **data)
    eventually(lambda: (0, 1) == (site.queue.sizes().ready, site.queue.sizes().reserved))
    return worker


def is_halted_in_its_wait(site: Site, worker: int) -> bool:
    """At the beginning of its wait, which else may end before the job comes. If it is not there it goes on."""
    if waits(site, anew=True):
        halt(worker)
        if waits(site, anew=True):
            return True
        go_on(worker)
    return False


def waits(site: Site, *, anew: bool = False) -> int:
    """How many clients wait for a job of this site; ``anew``: of those that have for less than a second."""
    with redis.Redis.from_url(site.connection.url) as server:
        clients = server.client_list()
    return sum("b" in client["flags"] and not (anew and int(client["idle"])) for client in clients)


def test_what_a_worker_was_given_when_it_was_killed_is_run_at_once_as_if_it_had_not_been(site):
    with site.pool("--workers", "1") as pool:
        worker = taken_by_a_halted_worker(site, pool)
        kill(worker)
        eventually(lambda: site.trail(event="end"))
        eventually(lambda: 0 == site.queue.size())

    assert [1] == [line["attempt"] for line in site.trail(event="start")]
    assert 1 == pool.log().count("given back")


@pytest.mark.thorough("a wait that is cut off or stands still; the first test has a worker that is killed in it")
def test_it_is_run_by_another_worker_when_its_own_stands_still(site):
    """It is killed 4 seconds after the end of its wait."""
    with site.pool("--workers", "1", config="[connection]\nblock_for = 5\n") as pool:
        worker = taken_by_a_halted_worker(site, pool)
        eventually(lambda: site.trail(event="end"))

        assert worker not in pool.workers()
    assert [1] == [line["attempt"] for line in site.trail(event="start")]


@pytest.mark.by_turns("signum")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGQUIT])
def test_a_stop_puts_back_what_came_meanwhile(site, signum):
    with site.pool("--workers", "1") as pool:
        worker = taken_by_a_halted_worker(site, pool)
        pool.signal(signum)
        eventually(lambda: pool.pids("^queuepool: master .* draining"))
        go_on(worker)
        assert 0 == pool.wait()

    assert [] == site.trail(event="start")
    assert (1, 0) == (site.queue.sizes().ready, site.queue.sizes().reserved)


@pytest.mark.thorough("a wait that is cut off or stands still; the first test has a worker that is killed in it")
def test_a_paused_queue_puts_back_what_came_meanwhile(site):
    with site.pool("--workers", "1") as pool:
        worker = taken_by_a_halted_worker(site, pool)
        site.run("pause", "default", *site.where)
        eventually(lambda: "queues paused queues=default" in pool.log())
        go_on(worker)
        eventually(lambda: 1 == site.queue.sizes().ready)
        site.run("continue", "default", *site.where)
        eventually(lambda: site.trail(event="end"))

    assert [1] == [line["attempt"] for line in site.trail(event="start")]


def test_workers_that_wait_stop_at_once_and_leave_nothing_to_be_settled(site):
    with site.pool("--workers", "4", config=_LONG) as pool:
        eventually(lambda: 4 == waits(site))
        pool.signal(signal.SIGTERM)

        assert 0 == pool.wait()  # half the time of a wait, at most
    assert not [word for word in ("given back", "killed") if word in pool.log()]


@pytest.mark.thorough("a wait that is cut off or stands still; the first test has a worker that is killed in it")
def test_connections_that_are_closed_while_workers_wait_cost_no_job_and_no_attempt(site):
    with site.pool("--workers", "2") as pool:
        with redis.Redis.from_url(site.connection.url) as server:
            for number in range(20):
                for client in server.client_list():
                    if "b" in client["flags"]:
                        server.client_kill_filter(_id=client["id"])
                site.push("ok", tag=str(number))
        eventually(lambda: 20 == len(site.trail(event="end")))
        eventually(lambda: 0 == site.queue.size())
        assert 2 == len(pool.workers())

    assert [1] * 20 == [line["attempt"] for line in site.trail(event="start")]


def test_a_job_that_becomes_due_meanwhile_is_run_when_it_is_due(site):
    with site.pool("--workers", "1", config=_LONG):
        eventually(lambda: waits(site))
        due = time.time() + 1.0
        site.push("ok", delay=1.0)
        [start] = eventually(lambda: site.trail(event="start"))

    assert due - 0.1 < start["at"]


def test_a_lone_worker_that_was_halted_runs_nothing_under_a_lease_that_may_have_ended(site):
    (site.path / "lone.ini").write_text("[connection]\nblock_for = 5\n")
    log = site.path / "lone.log"
    command = [sys.executable, "-m", "queuepool", "work", *site.flags("-c", str(site.path / "lone.ini"))]
    with log.open("w") as opened:
        worker = warm.start(command, env=site.env(), cwd=site.path, stderr=opened)
    try:
        eventually(lambda: is_halted_in_its_wait(site, worker.pid))
        began = time.monotonic()
        site.push("ok")
        eventually(lambda: 1 == site.queue.sizes().reserved)
        eventually(lambda: time.monotonic() > began + 6.5)  # the rest of its wait, and a second more
        go_on(worker.pid)
        eventually(lambda: site.trail(event="end"))
    finally:
        worker.terminate()
        go_on(worker.pid)
        worker.wait(timeout=60)

    assert 1 == log.read_text().count("given back")
    assert [1] == [line["attempt"] for line in site.trail(event="start")]
