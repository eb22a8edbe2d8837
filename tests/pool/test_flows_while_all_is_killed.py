"""A group of 1,000 with a callback, while every process of its pool is killed in turn, again and again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest

from queuepool import group
from queuepool.jobs.composing import flow_of
from tests.support.drivers import site_on
from tests.support.eventually import eventually
from tests.support.flowapp import merge, step
from tests.support.pools import RunningPool, Site

WORKERS, COUNT = 4, 1000
#: jobs that end between two kills
BETWEEN = 6
#: jobs at the end of which none is killed: how often the callback runs is then known exactly (``test_flows.py`` kills
#: there, too)
LAST = 40
IN_TURN = ("steward", *(f"worker {number}" for number in range(1, WORKERS + 1)), "master")
FLAGS = ("--workers", str(WORKERS), "--max-crashes", "0", "--modules", "tests.support.flowapp")


@pytest.mark.thorough("the callback of a small group, whose workers alone are killed, is in test_flows.py")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("driver", ["redis", "postgres"])
def test_the_callback_of_a_thousand_runs_once_while_every_process_is_killed_in_turn(driver, request):
    with site_on(driver, request) as place:
        calls = [step.call(f"g{number}", 0.02) for number in range(COUNT)]
        found = flow_of(group(calls, then=merge.call)).push_to(place.queue)
        kills, begun = Counter[str](), time.monotonic()
        while kill_each_in_turn(place, kills):
            pass
        with place.pool(*FLAGS):
            assert "done" == found.wait(300).state

        print(f"{driver}: {kills.total()} kills in {time.monotonic() - begun:.0f} s: {dict(kills)}")
        [merged] = place.trail(what="merges")
        assert [f"G{number}" for number in range(COUNT)] == merged["names"]
        assert {f"g{number}" for number in range(COUNT)} == ended(place)
        assert len(place.trail(what="begins")) <= COUNT + kills.total()
        assert all(kills[role] > 2 for role in IN_TURN)


def kill_each_in_turn(place: Site, kills: Counter[str]) -> bool:
    """Of one pool, the master last; returns whether there is enough left for another one."""
    with place.pool(*FLAGS) as pool:
        for role in IN_TURN:
            target = len(ended(place)) + BETWEEN
            eventually(lambda target=target: len(ended(place)) >= min(target, COUNT - LAST), 120)
            if len(ended(place)) >= COUNT - LAST:
                return False
            kills[role] += kill(pool, role)
        pool.wait()
    return True


def ended(place: Site) -> set[str]:
    return {line["name"] for line in place.trail(what="ends")}


def kill(pool: RunningPool, role: str) -> int:
    """Returns how many were killed: it may be about to be replaced."""
    for pid in pool.pids(rf"^queuepool: {role} \[")[:1]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return 1
    return 0
