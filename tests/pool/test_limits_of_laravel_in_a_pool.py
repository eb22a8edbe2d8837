"""Laravel's limits in pools, without Laravel: deaths, outages, coroutines and tests."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually
from tests.support.pools import Site

HANDLERS = """
import asyncio, os, signal
from pathlib import Path
from queuepool import current, job
from queuepool.jobs.laravel_limits import LaravelRate, NoOverlap, Throttle
from tests.support.poolapp import note

@job("dies", around=[NoOverlap(by="{order}", expires_after="1h")])
def dies(order):
    note(event="ran", order=order, attempt=current().attempts)
    if current().attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)

@job("waits", around=[NoOverlap(by="{order}"), LaravelRate("waits", 2, per="1h", by="{order}"), Throttle(1)])
async def waits(order, gate, number):
    note(event="ran", number=number)
    while not Path(gate).exists():
        await asyncio.sleep(0.01)
"""


@pytest.fixture
def limited(site: Site) -> tuple[str, ...]:
    (site.path / "limited.py").write_text(HANDLERS)
    return ("--modules", "limited", "--workers", "1")


def test_the_lock_of_an_attempt_that_was_killed_is_its_jobs_again(site, limited):
    site.queue.push("dies", {"order": 7})
    with site.pool(*limited):
        eventually(lambda: 0 == site.queue.size())

    assert [1, 2] == [line["attempt"] for line in site.trail(event="ran")]
    assert not site.queue.stores.values.owners(["laravel-queue-overlap:dies:7"])


def test_coroutines_on_one_loop_exclude_each_other(site, limited, tmp_path):
    for number in range(3):
        site.queue.push("waits", {"order": 7, "gate": str(tmp_path / "gate"), "number": number})
    with site.pool(*limited, "--concurrency", "5") as pool:
        eventually(lambda: site.trail(event="ran"))  # the others may be released before it begins
        eventually(lambda: 2 <= pool.log().count("job released"))
        assert 1 == len(site.trail(event="ran"))
        (tmp_path / "gate").touch()
        eventually(lambda: 2 == len(site.trail(event="ran")))
        eventually(lambda: (0, 1) == (site.queue.sizes().ready, site.queue.sizes().delayed))

    assert 2 == len({line["number"] for line in site.trail(event="ran")})


def test_a_job_whose_cache_is_away_is_put_off(site, limited):
    site.queue.push("dies", {"order": 7})
    with site.pool(*limited, config="[connection]\nlock_url = redis://127.0.0.1:1/0\n") as pool:
        eventually(lambda: "job released" in pool.log())

    assert "NoOverlap of job dies" in pool.log()
    assert "it is put off for 5s" in pool.log()
    assert [] == site.trail(event="ran")
