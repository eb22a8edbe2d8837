"""A payload that kills who reads it, before any job has begun, is set aside after two deaths; the pool goes on."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually
from tests.support.redis_server import PREFIX

#: the application's own function reads the arguments of each job, before it begins
MODULE = """
import os, signal
from queuepool import job
from tests.support.poolapp import note

def identify(mode, how=""):
    note(event="reads", mode=mode)
    if how:
        os.kill(os.getpid(), getattr(signal, how))
    return mode

@job("identified", unique_id=identify)
def identified(mode, how=""): note(event="ran", mode=mode)
"""


@pytest.mark.fault("F61")
@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["", "preload"])
@pytest.mark.by_turns("preload")
def test_what_kills_its_readers_is_set_aside_and_what_waits_behind_it_runs(site, preload):
    (site.path / "own.py").write_text(MODULE)
    for mode in ("first", "deadly", "last"):
        site.queue.push("identified", {"mode": mode} | ({"how": "SIGKILL"} if mode == "deadly" else {}))
    with site.pool("--workers", "2", "--modules", "own", *preload) as pool:
        eventually(lambda: {"first", "last"} == {line["mode"] for line in site.trail(event="ran")})
        [entry] = eventually(lambda: list(site.queue.stores.records.quarantined("default")))
        eventually(lambda: 0 == site.queue.size())

    assert ("deadly", True) == (entry.reason, b'"attempts":0}' in entry.payload)
    assert ["deadly"] * 2 == [line["mode"] for line in site.trail(event="reads") if line["mode"] == "deadly"]
    assert ["first", "last"] == sorted(line["mode"] for line in site.trail(event="ran"))
    assert "payload quarantined" in pool.log()


@pytest.mark.fault("F61")
def test_what_kills_lone_workers_is_set_aside_by_the_third_and_what_waits_behind_it_runs(site):
    """A supervisor starts the next one; nobody but that one could count the deaths."""
    (site.path / "own.py").write_text(MODULE)
    (site.path / "alone.ini").write_text("[connection]\nretry_after = 1\n")
    for mode in ("deadly", "last"):
        data = {"mode": mode} | ({"how": "SIGKILL"} if mode == "deadly" else {})
        site.queue.push("identified", data, options={"maxTries": 9})

    def next_one() -> bool:
        site.work("--modules", "own", "-c", "alone.ini", check=False)
        return 0 == site.queue.size()

    eventually(next_one)
    [entry] = site.queue.stores.records.quarantined("default")

    assert ("deadly", True) == (entry.reason, b'"mode":"deadly"' in entry.payload)
    assert ["deadly", "last", "deadly"] == [line["mode"] for line in site.trail(event="reads")]
    assert ["last"] == [line["mode"] for line in site.trail(event="ran")]

    (site.path / "own.py").write_text(MODULE.replace("os.kill", "print"))
    site.run("quarantine", "retry", "default", entry.id, *site.where)
    site.work("--modules", "own")
    assert ["last", "deadly"] == [line["mode"] for line in site.trail(event="ran")]  # mended, it runs


@pytest.mark.fault("F61")
def test_a_job_that_comes_to_lone_workers_again_and_again_is_not_set_aside_for_that(site):
    site.push("release", times=5, maxTries=9)
    site.work()

    assert [] == list(site.queue.stores.records.quarantined("default"))
    assert 0 == site.queue.size()


#: 81 kB: whoever tries each of its quotes as the beginning of a text reads for minutes
HOSTILE = "[" * 1000 + '"' + '\\"' * 40_000


@pytest.mark.thorough("unit/test_wild_notices.py has hostile notices")
@pytest.mark.bad_input("B168")
def test_hostile_notices_of_other_pools_stop_neither_the_alerts_nor_status(site, server):
    pools, notices = f"{PREFIX}queuepool:pools", {"brackets": HOSTILE, "large": "x" * 2**26}
    server.hset(pools, mapping=notices)
    with site.pool("--workers", "1", config="[alerts]\nexec = /bin/true\nlost = 60\n") as pool:
        eventually(lambda: server.hlen(pools) == 1)  # the watch of the alerts has removed what is no notice
        site.push()
        eventually(lambda: site.trail(event="end"))
        server.hset(pools, mapping=notices)
        shown = site.run("status", "--all", *site.where, check=False)  # its last notice may say that it starts

    assert "default" in shown.stdout
    assert not [word for word in ("died", "skipping", "STALLED") if word in pool.log()]
