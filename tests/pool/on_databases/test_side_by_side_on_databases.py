"""Workers that run many jobs at once keep their promises on databases too: deaths, stops, long jobs, outages."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("site", "server")
BESIDE = ("--workers", "1", "--concurrency", "10", "--modules", "tests.support.besideapp")


def push(site: Site, mode: str, **data: Any) -> str:
    return site.push(mode, name="beside", **data)


def running(site: Site, count: int = 3) -> None:
    for number in range(count):
        push(site, "until", gate=str(site.path / "gate"), tag=str(number), maxTries=1)


def have_begun(site: Site, count: int = 3) -> None:
    eventually(lambda: count <= len(site.trail(event="start", mode="until")))


def test_whatever_a_job_does_it_is_settled_and_its_neighbours_run_uncounted(site):
    running(site)
    with site.pool(*BESIDE):
        have_begun(site)
        push(site, "raise", tag="raises", maxTries=2)
        push(site, "sleep", seconds=60, tag="late", timeout=0.5, maxTries=1)
        push(site, "decide", how="release", tag="waits", maxTries=2)
        eventually(lambda: 2 == site.queue.stores.failed.count())
        eventually(lambda: site.trail(event="end", tag="waits", attempt=2))
        push(site, "segfault", tag="crashes", maxTries=1)
        eventually(lambda: 3 == site.queue.stores.failed.count())
        eventually(lambda: 6 == len(site.trail(event="start", mode="until")))
        (site.path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())

    attempts = {json.loads(row.payload)["data"]["tag"]: row.attempts for row in site.queue.stores.failed.page()}
    assert {"raises": 2, "late": 1, "crashes": 1} == attempts
    assert [1] * 6 == [line["attempt"] for line in site.trail(event="start", mode="until")]
    assert 3 == len(site.trail(event="end", mode="until"))


@pytest.mark.thorough("test_pool_on_databases.py renews a lease; stops side by side are tested on Redis")
def test_jobs_may_be_longer_than_their_leases(site):
    running(site)
    push(site, "ok", delay=6)
    with site.pool(*BESIDE, config="[connection]\nretry_after = 4\n"):
        eventually(lambda: site.trail(event="end", mode="ok"))
        (site.path / "gate").touch()
        eventually(lambda: 3 == len(site.trail(event="end", mode="until")))

    assert 3 == len(site.trail(event="start", mode="until"))


@pytest.mark.thorough("test_pool_on_databases.py renews a lease; stops side by side are tested on Redis")
def test_a_stop_lets_the_jobs_end_that_run(site):
    running(site)
    with site.pool(*BESIDE) as pool:
        have_begun(site)
        pool.signal(signal.SIGTERM)
        (site.path / "gate").touch()
        assert 0 == pool.wait()

    assert 3 == len(site.trail(event="end", mode="until"))
    assert 0 == site.queue.size()


@pytest.mark.thorough("test_pool_on_databases.py kills a database; in the next test jobs end while it is locked")
def test_jobs_that_end_while_the_database_is_away_are_done_once(away, server):
    running(away)
    with away.pool(*BESIDE) as pool:
        have_begun(away)
        server.kill()
        (away.path / "gate").touch()
        eventually(lambda: 3 == len(away.trail(event="end", mode="until")))
        eventually(lambda: "store lost" in pool.log())
        server.start()
        eventually(lambda: 0 == away.queue.size())
        push(away, "ok")
        eventually(lambda: away.trail(event="end", mode="ok"))

    assert 3 == len(away.trail(event="start", mode="until"))


def test_jobs_that_end_while_another_program_locks_the_file_are_done_once(request):
    with site_on("sqlite", request) as site:
        running(site)
        with site.pool(*BESIDE):
            have_begun(site)
            with closing(
                sqlite3.connect(site.connection.url.removeprefix("sqlite:///"), isolation_level=None)
            ) as other:
                other.execute("BEGIN EXCLUSIVE")
                (site.path / "gate").touch()
                eventually(lambda: 3 == len(site.trail(event="end", mode="until")))
                began = time.monotonic()
                eventually(lambda: time.monotonic() > began + 1.0)  # it tries to write meanwhile
                other.execute("ROLLBACK")
            eventually(lambda: 0 == site.queue.size())

        assert 3 == len(site.trail(event="start", mode="until"))
