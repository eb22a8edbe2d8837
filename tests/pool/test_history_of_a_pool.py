"""``queuepool history`` after real pools: what their jobs became is in the store when they have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.pools import Site

pytestmark = pytest.mark.every_store("at")


@pytest.fixture(params=["redis", "sqlite", "postgres", "mariadb"])
def at(request: pytest.FixtureRequest) -> Iterator[Site]:
    """A place for a pool on each store."""
    with site_on(request.param, request) as found:
        yield found


def history(site: Site, *flags: str) -> dict:
    found: dict = json.loads(site.run("history", *site.where, "--json", *flags).stdout)
    return found


def run_jobs(site: Site, done: int, failed: int) -> None:
    """A pool that ends when these jobs have."""
    for _ in range(done):
        site.push("ok")
    for _ in range(failed):
        site.push("raise")
    with site.pool("--workers", "2") as pool:
        eventually(lambda: pool.pids(rf"^queuepool: master .* busy=0 done={done} failed={failed}$"))


def test_what_pools_did_is_in_the_history_when_they_have_ended(at):
    run_jobs(at, done=3, failed=1)
    run_jobs(at, done=2, failed=0)
    for ago in ("1h", "24h", "35d"):
        [job] = history(at, "--range", ago)["jobs"]

        assert ("default", "do", 5, 1) == (job["queue"], job["job"], job["done"], job["failed"])
        assert 0.0 <= job["run_p50"] <= job["run_p95"]
    whole = history(at)

    assert ["default"] == [queue["queue"] for queue in whole["queues"]]
    assert {"stop": 4} == whole["events"]
    text = at.run("history", *at.where).stdout

    assert ["QUEUE", "JOB", "DONE"] == text.splitlines()[0].split()[:3]
    for none in (history(at, "--queue", "none"), history(at, "--job", "none")):
        assert ([], [], {}) == (none["jobs"], none["queues"], none["events"])
    assert "no job doo in this time; did you mean do?\n" == at.run("history", *at.where, "--job", "doo").stdout
    assert 5 == sum(bucket["done"] for bucket in history(at, "--job", "do", "--queue", "default")["buckets"])


@pytest.mark.thorough("metrics has the history from written boards; the first test that of a pool")
def test_since_when_is_seen_line_by_line(at):
    run_jobs(at, done=3, failed=1)
    for unit, lines in (("minute", 60), ("hour", (1, 2)), ("day", (1, 2))):
        head, *rows = at.run("history", *at.where, "--by", unit).stdout.splitlines()
        assert ["AT", "ENDED", "FAILED", "LOST", "PER_MINUTE", "RUN_P95", "WAIT_P95", "READY"] == head.split()
        assert len(rows) in (lines if isinstance(lines, tuple) else (lines,))
        assert ["4", "1", "0"] == [str(sum(int(row.split()[column]) for row in rows)) for column in (1, 2, 3)]
        assert max(map(len, rows)) <= 80
    whole = history(at)["jobs"][0]
    refused = at.run("history", *at.where, "--by", "minute", "--range", "3h", check=False)
    both = at.run("history", *at.where, "--by", "minute", "--json", check=False)

    assert whole["per_minute"] >= 1.0  # the pool has not lived for as long as the range
    assert (2, 2) == (refused.returncode, both.returncode)
    assert "a range this long is kept in steps of 10m" in refused.stderr


@pytest.mark.by_turns("setting")
@pytest.mark.parametrize("setting", ["history = 0", "metrics = no"])
def test_a_pool_keeps_none_if_it_is_not_to(site, server, setting):
    site.push("ok")
    with site.pool("--workers", "1", config=f"[pool]\n{setting}\n"):
        eventually(lambda: site.trail(event="end"))

    assert [] == [key for key in server.keys("*") if b"history" in key]


@pytest.mark.thorough("metrics has the history from written boards; the first test that of a pool")
def test_what_is_kept_expires(site, server):
    site.push("ok")
    with site.pool("--workers", "1", "--history", "6h"):
        eventually(lambda: site.trail(event="end"))
    lifetimes = {key.split(b":")[-2]: server.ttl(key) for key in server.keys("*") if b":history:" in key}

    expected = {b"1m": 7260, b"10m": 6 * 3600 + 600, b"1h": 6 * 3600 + 3600}

    assert expected.keys() == lifetimes.keys()
    assert all(expected[grain] - 30 <= seconds <= expected[grain] for grain, seconds in lifetimes.items())


@pytest.mark.thorough("metrics has the history from written boards; the first test that of a pool")
@pytest.mark.bad_input("B148")
def test_nonsense_in_the_store_is_counted_and_costs_nothing_else(site, server):
    run_jobs(site, done=1, failed=0)
    key = next(key for key in server.keys("*") if b":history:1m:" in key)  # two, if a minute ended meanwhile
    server.hset(key, "evil:p:1", "\x1b[31mnonsense")
    server.hset(key, "large:p:1", b"x" * 50_000_000)
    done = site.run("history", *site.where)

    assert "2 records of the history cannot be read" == done.stderr.strip()
    assert ["QUEUE", "default", "", "QUEUE", "default"] == [line[:7].strip() for line in done.stdout.splitlines()][:5]


@pytest.mark.bad_input("B149")
@pytest.mark.parametrize("ago", ["-1", "99999d", "1h; DROP", "", "30s", "36d", "٣h"])
def test_a_range_that_is_none_is_refused_in_a_line(site, ago):
    done = site.run("history", *site.where, "--range", ago, check=False)

    assert 2 == done.returncode
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.bad_input("B149")
def test_a_range_given_twice_is_refused(site):
    assert 2 == site.run("history", *site.where, "--range", "1h", "--range", "2h", check=False).returncode
