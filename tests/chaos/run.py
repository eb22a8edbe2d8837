"""One run, from its first process to its last, then the ruling."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tests.chaos import counted, kept, scan, ticks
from tests.chaos.nemesis import inject_faults, stop_all
from tests.chaos.plan import Plan
from tests.chaos.rig import Rig
from tests.chaos.world import ROOT


def run(folder: Path, plan: Plan, code: Path = ROOT) -> Path:
    """Run the plan on the package in ``code``; gives the ledger."""
    rig = Rig(folder, plan, code)
    try:
        rig.start()
        rig.produce()
        rig.wait_for_jobs()
        inject_faults(rig)
        left = _end(rig)
    finally:
        rig.take_down()
    rig.ledger.write("end", left=left)  # nobody else writes any more
    return folder / "ledger"


def _end(rig: Rig) -> int:
    """Returns how many jobs are left."""
    rig.stop_producer()
    rig.heal()
    left = rig.drain()
    rig.stop_looking()
    if left == 0:
        _look_at_the_whole_pools(rig)
    stop_all(rig)
    for pid in scan.note_orphans(rig):
        _end_orphan(rig, pid)
    scan.note_leftovers(rig)
    scan.note_secrets(rig)
    scan.note_stored(rig)
    scan.note_locks(rig)
    scan.note_outcomes(rig)
    ticks.note_ticks(rig)
    scan.note_states(rig)
    if rig.plan.records:
        kept.note_kept(rig)
    return left


def _look_at_the_whole_pools(rig: Rig) -> None:
    since = time.time()
    rig.rest(rig.store.counts_after)  # what was done last is settled with the next reserve
    if rig.plan.settle:
        most = sum(5 * rig.store.needed(pool.workers) for pool in rig.pools)  # five times as much is not an accident
        rig.ledger.write("idle", n=_commands_when_idle(rig, most), seconds=rig.plan.settle, most=most)
    ticks.note_schedule(rig)
    counted.note_counts(rig, since if rig.plan.settle else 0.0)
    scan.note_resources(rig)
    for pool in rig.pools:
        pool.note_size(rig.plan.whole)


def _commands_when_idle(rig: Rig, most: float) -> int:
    """In one of three stretches of ``settle`` seconds, the quietest: who is busy with nothing is so in each.

    A session of PostgreSQL may report what it did before only ten seconds later.
    """
    found = list[int]()
    for _ in range(3):
        before = scan.commands(rig)
        rig.rest(rig.plan.settle)
        found.append(scan.commands(rig) - before)
        if found[-1] <= most * rig.plan.settle:
            break
    return min(found)


def _end_orphan(rig: Rig, pid: int) -> None:
    rig.ledger.write("kill", pid=pid, why="end", sig=9)
    try:
        os.kill(pid, signal.SIGKILL)  # it has our cookie
    except ProcessLookupError:
        sys.stderr.write(f"chaos: {pid} has ended by itself\n")
