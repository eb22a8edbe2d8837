"""Faults in what is queued: in bulk, in far years, and beside Laravel's workers."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from contextlib import ExitStack
from itertools import chain, count
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.samples import payload

READY = f"{PREFIX}queues:default"
REPORT = "App\\Jobs\\Report@build"
BATCH = 1000
NOW = 1_800_000_000.0


@pytest.fixture
def store(stores):
    stores.queue.clock = repr(NOW)
    return stores.queue


def drained(store: Any) -> list[int]:
    """How many jobs each call moved, until nothing was left to move."""
    moved = []
    while not moved or moved[-1]:
        moved.append(store.stage(["default"]).moved)
    return moved[:-1]


@pytest.mark.fault("F56")
def test_many_thousand_ended_leases_are_moved_in_batches_and_none_is_lost(server, store):
    rows = {payload(str(number)): NOW - 1 for number in range(20_500)}
    server.zadd(f"{READY}:reserved", rows)

    assert [BATCH] * 20 + [500] == drained(store)
    assert set(rows) == set(server.lrange(READY, 0, -1))


@pytest.mark.fault("F66")
def test_twenty_thousand_jobs_due_in_one_second_are_moved_in_batches_and_in_order(server, store):
    many = [payload(f"{number:05}") for number in range(20_000)]
    store.push("default", many, delay=1.0)
    store.clock = repr(NOW + 1)

    assert [BATCH] * 20 == drained(store)
    assert many == server.lrange(READY, 0, -1)


@pytest.mark.fault("F44")
@pytest.mark.parametrize("moment", [2**31 - 1.5, 2**31 - 0.5, 2**32 - 200.0], ids=["2038", "after", "2106"])
def test_no_year_that_a_lease_can_tell_is_special(store, moment):
    store.clock = repr(moment)
    store.push("default", [payload("a")], delay=1.0)
    store.clock = repr(moment + 1)
    [lease] = store.reserve(["default"], 131_071, 1).leases
    store.clock = repr(moment + 50)
    assert [True] == store.renew([lease])
    store.clock = repr(moment + 139)
    early = store.reserve(["default"], 7, 1).leases
    assert [] == store.reclaim(["default"], 131_070, 200.0, known=())
    store.clock = repr(moment + 141)

    assert ([], 1) == (early, len(store.reserve(["default"], 7, 1).leases))


@pytest.mark.fault("F63")
def test_a_job_that_kills_every_worker_fails_in_the_end_and_keeps_no_other_waiting_for_ever(site):
    poison = [site.push("kill", maxTries=0) for _ in range(2)]
    for _ in range(5):
        site.push("ok")
    with site.pool("--workers", "1"):
        eventually(lambda: 2 == site.queue.stores.failed.count(), within=20)
        eventually(lambda: 5 == len(site.trail(event="end")))

    assert set(poison) == {row.id for row in site.queue.stores.failed.page()}
    assert 6 == len(site.trail(event="start", mode="kill"))
    assert all("died" in row.exception for row in site.queue.stores.failed.page())


FLEET = """
import json, os, time
from queuepool import current, job

@job("App\\\\Jobs\\\\Report@build")
def report(id, sleep):
    with open(os.environ["TRAIL"], "a") as trail:
        trail.write(json.dumps({"event": "start", "id": id, "attempt": current().attempts}) + "\\n")
    time.sleep(sleep)
"""
MIXED, KILLS = 30, 4


def starts(site: Site, peer: Peer) -> dict[str, list[tuple[int, int]]]:
    """The jobs and their attempts that began, here and there."""
    there = [(line["data"]["id"], line["attempts"]) for line in peer.lines() if "job" in line]
    return {"here": [(line["id"], line["attempt"]) for line in site.trail(event="start")], "there": there}


@pytest.mark.fault("F65")
def test_workers_of_both_programs_that_are_killed_on_one_queue_lose_nothing(site, peer):
    numbers = count()

    def each_has_begun(many: int) -> bool:
        """Whether each has begun so many jobs; there are always some left, however slowly one program starts."""
        if site.queue.size() < MIXED:
            few = [(REPORT, {"id": next(numbers), "sleep": 0.03}) for _ in range(MIXED)]
            site.queue.bulk(few, options={"maxTries": 9})
        return many <= min(map(len, starts(site, peer).values()))

    (site.path / "fleet.py").write_text(FLEET)
    config = "[connection]\nretry_after = 2\nblock_for = 1\n"
    with ExitStack() as theirs, site.pool("--workers", "2", "--modules", "fleet", config=config) as pool:
        php = theirs.enter_context(peer.staying("work", tries=9, retry_after=2))
        for many in (5, 10):
            eventually(lambda many=many: each_has_begun(many))
            os.kill(pool.workers()[0], signal.SIGKILL)
            php.kill()
            php = theirs.enter_context(peer.staying("work", tries=9, retry_after=2))
        eventually(lambda: 0 == site.queue.size(), within=30)

    attempts = defaultdict(list)
    for number, attempt in chain(*starts(site, peer).values()):
        attempts[number].append(attempt)
    twice = {number: each for number, each in attempts.items() if len(set(each)) < len(each)}
    missed = sum(max(each) - len(each) for each in attempts.values())
    assert ({}, True) == (twice, missed <= KILLS), attempts  # one that is killed may have a job that it has not begun
    assert (next(numbers), 0) == (len(attempts), site.queue.stores.failed.count())
    assert [] == [line for line in peer.lines() if "failed" in line]
