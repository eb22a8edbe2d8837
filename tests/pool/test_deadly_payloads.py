"""A payload that kills who reads it, before any job has begun, is set aside after two deaths; the pool goes on."""

from __future__ import annotations

import pytest

from tests.support.eventually import eventually

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
        [entry] = eventually(lambda: list(site.queue.stores.quarantine.entries("default")))
        eventually(lambda: 0 == site.queue.size())

    assert ("deadly", True) == (entry.reason, b'"attempts":0}' in entry.payload)
    assert ["deadly"] * 2 == [line["mode"] for line in site.trail(event="reads") if line["mode"] == "deadly"]
    assert ["first", "last"] == sorted(line["mode"] for line in site.trail(event="ran"))
    assert "payload quarantined" in pool.log()
