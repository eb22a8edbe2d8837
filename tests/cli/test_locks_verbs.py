"""``queuepool locks``, and what the verbs that drop jobs or put them back do with the locks of unique ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.pools import Site
from tests.support.redis_server import PREFIX

Cli = Callable[..., Any]
LOCK = "laravel_unique_job:do:a"


@pytest.fixture
def cli(site: Site) -> Cli:
    return lambda *words, code=0: _run(site, words, code)


def _run(site: Site, words: tuple[str, ...], code: int) -> str:
    done = site.run(words[0], *words[1:], *site.where, check=False)
    assert code == done.returncode, done.stderr
    return done.stdout + done.stderr


def pushed(site: Site, mode: str = "ok", identity: str = "a", queue: str = "high") -> bool:
    """Whether the lock was free; the job has it now."""
    return bool(site.queue.push("do", {"mode": mode}, unique_id=identity, queue=queue))


def failed(site: Site) -> str:
    """The id of a unique job that has failed."""
    assert pushed(site, "raise")
    site.work("--queue", "high")
    return site.queue.stores.failed.page()[0].id


def test_locks_are_listed_and_freed_by_name(site, cli):
    assert pushed(site)
    [row] = json.loads(cli("locks", "list", "--json"))
    assert (LOCK, "redis", True) == (row["lock"], row["store"], len(row["owner"]) == 16)
    assert row["ends"]

    assert f"freed {LOCK}\n" == cli("locks", "free", LOCK)
    assert f"no lock {LOCK} is held\n" == cli("locks", "free", "do:a", code=1)
    assert "" == cli("locks", "list")
    assert pushed(site)


def test_a_failed_job_is_retried_under_its_lock_or_stays(site, cli):
    first = failed(site)
    cli("retry", first)
    assert not pushed(site)
    site.work("--queue", "high")

    assert pushed(site)
    assert f"failed job {first} stays: another job holds its unique lock\n" in cli("retry", first, code=1)
    assert "1 failed job left: other jobs hold their unique locks\n" in cli("retry", "all", code=1)
    assert (1, 1) == (site.queue.size("high"), site.queue.stores.failed.count())
    cli("clear", "high", "--force")
    assert "1 job put back" in cli("retry", "all")


def test_what_is_cleared_or_dropped_of_the_quarantine_leaves_no_lock(site, cli, server):
    assert pushed(site)
    cli("clear", "high", "--force")
    assert pushed(site)
    [raw] = site.queue.stores.queue.first("high", 1)
    server.lset(f"{PREFIX}queues:high", 0, raw.replace(b'"attempts":0', b'"attempts":0,"attempts":0'))
    site.work("--queue", "high")
    assert 1 == site.queue.sizes("high").quarantined

    assert not pushed(site)
    cli("quarantine", "drop", "high", "--all")
    assert pushed(site)


def test_what_goes_back_from_the_quarantine_takes_its_lock_or_stays(site, cli, server):
    assert pushed(site)
    site.queue.stores.queue.quarantine(site.queue.stores.queue.reserve(["high"], 1, 1).leases[0], "odd")
    [entry] = site.queue.stores.records.quarantined("high")
    cli("locks", "free", LOCK)
    assert pushed(site)

    words = f"{entry.id} stays in the quarantine of high: another job holds its unique lock\n"
    assert words == cli("quarantine", "retry", "high", entry.id, code=1)
    cli("locks", "free", LOCK)
    cli("quarantine", "retry", "high", entry.id)
    assert not pushed(site)


def test_a_schedule_whose_job_was_cleared_goes_on(site, cli):
    place = site.path / "pool.ini"
    place.write_text(
        f"[pool]\nmodules = tests.support.poolapp\n[connection]\nurl = {site.connection.url}\nprefix = {PREFIX}\n"
        "[schedule:tick]\nevery = 1h\njob = do\noverlap = no\n"
    )
    at, stores = ("-c", str(place)), site.queue.stores

    def state() -> str:
        return json.loads(site.run("schedule", "list", "--json", *at).stdout)[0]["state"]

    site.run("schedule", "run", "tick", *at)
    stores.values.begin({"tick": ""}, int(stores.queue.now()))
    again = site.run("schedule", "run", "tick", *at, check=False)
    assert (1, True) == (again.returncode, "queuepool locks free 'laravel_unique_job:do:schedule:tick'" in again.stderr)
    assert "held" == state()
    site.run("clear", "--force", *at)
    assert "unserved" == state()  # no pool runs
    site.run("schedule", "run", "tick", *at)
