"""Faults in what is queued: in bulk, in far years, and beside Laravel's workers."""

from __future__ import annotations

import os
import re
import signal
from collections import defaultdict
from contextlib import ExitStack
from itertools import chain
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.pools import Site
from tests.support.redis_server import PREFIX
from tests.support.samples import new_jobs, payload

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
    store.push("default", new_jobs(*many), delay=1.0)
    store.clock = repr(NOW + 1)

    assert [BATCH] * 20 == drained(store)
    assert many == server.lrange(READY, 0, -1)


@pytest.mark.fault("F44")
@pytest.mark.parametrize("moment", [2**31 - 1.5, 2**31 - 0.5, 2**32 - 200.0], ids=["2038", "after", "2106"])
def test_no_year_that_a_lease_can_tell_is_special(store, moment):
    store.clock = repr(moment)
    store.push("default", new_jobs(payload("a")), delay=1.0)
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
        eventually(lambda: 2 == site.queue.stores.failed.count(), within=60)
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
#: jobs pushed at once; kills of each program's workers
MIXED, OURS, THEIRS = 30, 4, 2


class Fleet:
    """One queue for the workers of both programs, and what they began there: jobs by number, with their attempts."""

    def __init__(self, site: Site, peer: Peer) -> None:
        self.site, self.peer = site, peer
        self.numbers: dict[str, int] = {}

    def starts(self) -> dict[str, list[tuple[int, int]]]:
        """What began here and there."""
        there = [(line["data"]["id"], line["attempts"]) for line in self.peer.lines() if "job" in line]
        return {"here": [(line["id"], line["attempt"]) for line in self.site.trail(event="start")], "there": there}

    def let_each_begin(self, many: int) -> None:
        """Wait until each has begun so many more; there are always some left, however slowly one program starts."""
        before = {where: len(begun) for where, begun in self.starts().items()}

        def have_begun() -> bool:
            if self.site.queue.size() < MIXED:
                self.push()
            return all(len(begun) >= before[where] + many for where, begun in self.starts().items())

        eventually(have_begun)

    def push(self) -> None:
        more = range(len(self.numbers), len(self.numbers) + MIXED)
        jobs = [(REPORT, {"id": number, "sleep": 0.03}) for number in more]
        self.numbers.update(zip(self.site.queue.bulk(jobs, options={"maxTries": 9}), more, strict=True))

    def drain(self) -> None:
        eventually(lambda: 0 == self.site.queue.size(), within=60)

    def attempts(self) -> dict[int, list[int]]:
        """Those that began, of each job."""
        found = defaultdict(list)
        for number, attempt in chain(*self.starts().values()):
            found[number].append(attempt)
        return found

    def missed(self) -> set[tuple[int, int]]:
        """The attempts that were counted, and never began."""
        return {
            (number, attempt)
            for number, begun in self.attempts().items()
            for attempt in set(range(1, max(begun))) - set(begun)
        }

    def lost(self, log: str) -> set[tuple[int, int]]:
        """The attempts that ran when our worker was killed: its handler may not yet have told that it began."""
        found = re.findall(r" job lost its worker id=(\S+) .*? attempts=(\d+)", log)
        return {(self.numbers[identity], int(attempt)) for identity, attempt in found}


@pytest.mark.fault("F65")
def test_workers_of_both_programs_that_are_killed_on_one_queue_lose_nothing(site, peer):
    (site.path / "fleet.py").write_text(FLEET)
    fleet, flags = Fleet(site, peer), ("--workers", "2", "--reserve-ahead", "4", "--modules", "fleet")
    config = "[connection]\nretry_after = 5\nblock_for = 1\n"
    with ExitStack() as theirs, site.pool(*flags, config=config) as pool:
        php = theirs.enter_context(peer.staying("work", tries=9, retry_after=5))
        for _ in range(OURS - THEIRS):
            fleet.let_each_begin(5)
            os.kill(pool.workers()[0], signal.SIGKILL)
        fleet.drain()
        before = fleet.missed()
        for _ in range(THEIRS):
            fleet.let_each_begin(5)
            os.kill(pool.workers()[0], signal.SIGKILL)
            php.kill()
            php = theirs.enter_context(peer.staying("work", tries=9, retry_after=5))
        fleet.drain()

    attempts, lost = fleet.attempts(), fleet.lost(pool.log())
    by_ours = before - lost  # only now: a job that lost its worker may run again before the log says so
    assert {} == {number: each for number, each in attempts.items() if len(set(each)) < len(each)}
    assert (set(), True) == (by_ours, len(lost) <= OURS), attempts  # a job that had not begun has its attempt back
    assert THEIRS >= len(fleet.missed() - lost), attempts  # Laravel's does not
    assert (len(fleet.numbers), 0) == (len(attempts), site.queue.stores.failed.count())
    assert [] == [line for line in peer.lines() if "failed" in line]
