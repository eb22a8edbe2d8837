"""Laravel's limits hold for both programs: whoever has the lock keeps the other out, and both count as one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.chains import settings
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import RunningPool, Site

pytestmark = pytest.mark.every_store("both")
LIMITED, STEP = "App\\Jobs\\Limited", "App\\Jobs\\Step"
HANDLERS = f"""
from queuepool import current, job
from queuepool.jobs.laravel_limits import LaravelRate, NoOverlap, Throttle
from tests.support.poolapp import note, until_told

def run(order, gate="", fails=False):
    note(event="ran", order=order, attempt=current().attempts)
    if gate:
        until_told(gate)
    if fails:
        raise RuntimeError("told to fail")

job({LIMITED!r}, around=[NoOverlap(by="{{order}}")])(run)
job("rated", around=[LaravelRate("stripe", 3, per="10m", by="{{order}}")])(run)
job("throttled", tries=9, around=[Throttle(3, per="10m", by="order {{order}}", backoff=0)])(run)
job("alone", around=[NoOverlap(by="{{order}}", release_after=None)])(run)

@job({STEP!r})
def step(number, fails=False):
    note(event="ran", order=number, attempt=current().attempts)
"""
IN_REDIS = HANDLERS.replace(
    f"@job({STEP!r})",
    f"""
job("braked", tries=9, around=[Throttle(2, per="10m", by="order {{order}}", backoff=0, in_redis=True)])(run)
job("counted", around=[LaravelRate("stripe", 3, per="10m", by="{{order}}", in_redis=True)])(run)

@job({STEP!r}, around=[LaravelRate("stripe", 3, per="10m", by="{{number}}", in_redis=True)])""",
)


@contextmanager
def pool_of(site: Site, workers: int = 1, *flags: str, handlers: str = HANDLERS) -> Iterator[RunningPool]:
    (site.path / "limited.py").write_text(handlers)
    with site.pool("--modules", "limited", "--workers", str(workers), *flags, config=settings(site)) as pool:
        yield pool


@contextmanager
def held_by_php(laravel: Peer, gate: Path, kind: str, order: str = "7") -> Iterator[None]:
    """Laravel is in a job, until the end or until there is this file."""
    with laravel.staying("enter", kind, order, gate=gate) as php:
        eventually(lambda: {"in": "php"} in laravel.lines())
        yield
        gate.touch()
        php.wait(30)


def ran(site: Site) -> list[tuple[int, int]]:
    return [(line["order"], line["attempt"]) for line in site.trail(event="ran")]


@pytest.mark.parametrize("flags", [(), pytest.param(("--concurrency", "3"), marks=pytest.mark.thorough("in a thread"))])
def test_a_lock_that_php_holds_keeps_python_out_until_it_is_released(both, tmp_path, flags):
    site, laravel = both
    with pool_of(site, 1, *flags) as pool, held_by_php(laravel, tmp_path / "gate", "overlap"):
        site.queue.push(LIMITED, {"order": 7})
        site.queue.push(LIMITED, {"order": 8})
        eventually(lambda: "job released" in pool.log())
        eventually(lambda: (8, 1) in ran(site))
        assert [(8, 1)] == ran(site)
        (tmp_path / "gate").touch()
        eventually(lambda: (7, 1) in ran(site))
        assert [(8, 1), (7, 1)] == ran(site)


def test_a_lock_that_python_holds_keeps_php_out_until_it_is_released(both, tmp_path):
    site, laravel = both
    with pool_of(site):
        site.queue.push(LIMITED, {"order": 7, "gate": str(tmp_path / "gate")})
        eventually(lambda: ran(site))
        kept_out = laravel.run("enter", "overlap", "7")
        other = laravel.run("enter", "overlap", "8")
        (tmp_path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())
        let_in = eventually(lambda: laravel.run("enter", "overlap", "7")["ran"])

    assert ({"ran": False, "released": 2}, True, True) == (kept_out, other["ran"], let_in)


def test_a_rate_counts_the_jobs_of_both(both):
    site, laravel = both
    began = time.monotonic()
    first = [laravel.run("enter", "rate", "7")["ran"] for _ in range(2)]
    with pool_of(site) as pool:
        site.queue.bulk([("rated", {"order": 7})] * 2)
        eventually(lambda: "job released" in pool.log())
        site.queue.push("rated", {"order": 8})
        eventually(lambda: (8, 1) in ran(site))
        delay = float(re.search(r"job released.* delay=([\d.]+)", pool.log())[1])
    refused = laravel.run("enter", "rate", "7")

    assert [True, True] == first
    assert [(7, 1), (8, 1)] == ran(site)
    left = 599 - (time.monotonic() - began)  # of ten minutes; Laravel counts whole seconds
    assert left <= delay <= 603
    assert not refused["ran"]
    assert left <= refused["released"] <= 603


def test_a_rate_in_redis_counts_the_jobs_of_both(site, peer):
    began = time.monotonic()
    first = peer.run("enter", "redis", "7")["ran"]
    with pool_of(site, handlers=IN_REDIS) as pool:
        site.queue.push("counted", {"order": 7})
        eventually(lambda: [(7, 1)] == ran(site))
        peer.run("through", "redis", "7")
        eventually(lambda: [(7, 1)] * 2 == ran(site))
        peer.run("through", "redis", "7")
        eventually(lambda: "job released" in pool.log())
        site.queue.push("counted", {"order": 8})
        eventually(lambda: (8, 1) in ran(site))
        delay = float(re.search(r"job released.* delay=([\d.]+)", pool.log())[1])
    refused = peer.run("enter", "redis", "7")

    assert first
    assert [(7, 1), (7, 1), (8, 1)] == ran(site)
    left = 599 - (time.monotonic() - began)
    assert left <= delay <= 604
    assert not refused["ran"]
    assert left <= refused["released"] <= 604
    assert peer.run("enter", "redis", "9")["ran"]


def test_a_rate_in_redis_fails_a_job_of_a_database(both):
    site, _ = both
    if site.connection.url.startswith(("redis", "unix")):
        pytest.skip("it counts there")
    with pool_of(site, handlers=IN_REDIS) as pool:
        site.queue.push("counted", {"order": 7})
        eventually(lambda: "job failed" in pool.log())

    words = "the rate stripe is counted in Redis (in_redis=True), but its jobs are in a database"
    assert words in site.queue.stores.failed.page()[0].exception


def test_exceptions_of_both_throttle_both(both):
    site, laravel = both
    laravel.run("enter", "throttle", "7", fails=True)
    with pool_of(site) as pool:
        site.queue.push("throttled", {"order": 7, "fails": True})
        eventually(lambda: 2 == len(ran(site)))
        eventually(lambda: re.search(r"job released.* delay=\d{3}", pool.log()))
        site.queue.push("throttled", {"order": 8})
        eventually(lambda: (8, 1) in ran(site))
    refused = laravel.run("enter", "throttle", "7")

    assert [(7, 1), (7, 2), (8, 1)] == ran(site)
    assert not refused["ran"]
    assert 550 < refused["released"] <= 603


@pytest.mark.thorough("the same counters are shared by test_a_rate_in_redis_counts_the_jobs_of_both")
def test_exceptions_in_redis_throttle_both(site, peer):
    """Counted by PHP, by Python, and by the middleware that a job of PHP carries."""
    peer.run("enter", "throttle in redis", "7", fails=True)
    with pool_of(site, handlers=IN_REDIS) as pool:
        site.queue.push("braked", {"order": 7, "fails": True})
        eventually(lambda: re.search(r"job released.* delay=\d{3}", pool.log()))
        peer.run("through", "throttle in redis", "7")
        eventually(lambda: 2 == len(re.findall(r"job released.* delay=\d{3}", pool.log())))
        peer.run("through", "throttle in redis", "8")
        eventually(lambda: (8, 1) in ran(site))
    refused = peer.run("enter", "throttle in redis", "7")

    assert [(7, 1), (8, 1)] == ran(site)
    assert not refused["ran"]
    assert 550 < refused["released"] <= 603


def test_middleware_that_a_job_of_php_carries_is_carried_out(both, tmp_path):
    site, laravel = both
    with pool_of(site) as pool, held_by_php(laravel, tmp_path / "gate", "step", "8"):
        for order in "87":
            laravel.run("through", "step", order)
        eventually(lambda: "job released" in pool.log())
        eventually(lambda: (7, 1) in ran(site))
        assert [(7, 1)] == ran(site)
        (tmp_path / "gate").touch()
        eventually(lambda: (8, 1) in ran(site))


@pytest.mark.thorough("test_laravel_limits refuses it")
def test_a_rate_whose_numbers_only_php_knows_is_refused(both):
    site, laravel = both
    laravel.run("through", "rate", "9")
    with pool_of(site) as pool:
        eventually(lambda: "job failed" in pool.log())

    assert "declare around=[LaravelRate('stripe', …)]" in site.queue.stores.failed.page()[0].exception


@pytest.mark.thorough("test_middleware of the pool skips jobs, and a lock keeps one out above")
def test_a_job_that_may_be_left_out_is_skipped_while_the_lock_is_held(both, tmp_path):
    site, _ = both
    with pool_of(site, 2) as pool:
        site.queue.push("alone", {"order": 7, "gate": str(tmp_path / "gate")})
        eventually(lambda: ran(site))
        site.queue.push("alone", {"order": 7})
        eventually(lambda: "job skipped" in pool.log())
        (tmp_path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())

    assert [(7, 1)] == ran(site)
