"""Pools keep their promises on databases too: deaths, deadlines, long jobs, jobs given back, outages."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.support.eventually import eventually
from tests.support.scenarios import finish_beside_a_stuck_job, outage

pytestmark = pytest.mark.every_store("site", "server")


def test_whatever_becomes_of_its_worker_a_job_is_settled_at_once(site):
    with site.pool("--workers", "2", "--tries", "2"):
        site.push("kill", tag="killed", maxTries=1)
        site.push("hang_in_c", tag="hangs", timeout=1, maxTries=1)
        site.push("segfault", tag="crashes")
        site.push("raise", tag="raises", maxTries=2)
        site.push("release", tag="waits", delay=1.0)
        for number in range(20):
            site.push("ok", tag=str(number))
        eventually(lambda: 4 == site.queue.stores.failed.count() and 0 == site.queue.size())

    said = {row.exception.split(":")[0].split("\n")[0] for row in site.queue.stores.failed.page()}
    assert {"WorkerDied", "TimedOut", "Traceback (most recent call last)"} == said
    attempts = {json.loads(row.payload)["data"]["tag"]: row.attempts for row in site.queue.stores.failed.page()}
    assert {"killed": 1, "hangs": 1, "crashes": 3, "raises": 2} == attempts
    attempts = [line["attempt"] for line in site.trail(event="start", mode="raise")]
    assert [1, 2] == attempts
    assert 20 == len({line["tag"] for line in site.trail(event="end", mode="ok")})
    assert 20 + 2 == len(site.trail(event="end"))


def test_a_job_may_be_longer_than_its_lease(site):
    lease, gate = 4, site.path / "gate"
    site.push("until", gate=str(gate))
    site.push("ok", delay=1.5 * lease)
    with site.pool("--workers", "2", config=f"[connection]\nretry_after = {lease}\n"):
        eventually(lambda: site.trail(event="end", mode="ok"))
        gate.touch()
        eventually(lambda: site.trail(event="end", mode="until"))

    assert [1] == [line["attempt"] for line in site.trail(event="start", mode="until")]


@pytest.mark.thorough("the contract of prefetch has it on each store, and test_jobs_reserved_ahead.py in a pool")
def test_what_waits_behind_a_stuck_job_is_done_by_another_worker(site):
    finish_beside_a_stuck_job(site)

    assert {1} == {line["attempt"] for line in site.trail(event="start")}
    assert 1 == site.queue.sizes().ready  # the stuck one, put back


@pytest.mark.fault("F24")
def test_workers_of_a_killed_master_finish_and_nothing_runs_twice(site):
    gate = site.path / "gate"
    site.push("until", gate=str(gate))
    with site.pool("--workers", "2") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.titles()
        os.kill(pool.pid, signal.SIGKILL)
        pool.wait()
        gate.touch()
        eventually(lambda: 0 == site.queue.size())

    assert 1 == len(site.trail(event="start")) == len(site.trail(event="end"))


@pytest.mark.fault("F68")
def test_a_pool_outlives_a_killed_database_and_its_running_job_is_settled_after(away, server):
    with outage(away, server):
        away.push("ok")
        eventually(lambda: away.trail(event="end", mode="ok"))

    assert 1 == len(away.trail(event="start", mode="until"))
