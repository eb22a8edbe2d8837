"""Many coroutines at once in two processes: what a job costs, and the memory of those that run."""

from __future__ import annotations

import time

import psutil

from tests.bench.peers import cases
from tests.bench.peers.peer import Peer
from tests.bench.peers.sizing import LONG
from tests.bench.peers.stage import Stage, family
from tests.bench.rig import until

PROCESSES = 2
#: the parts of the jobs after which it is looked
_FROM, _TO = 0.15, 0.85


def drained(stage: Stage, peer: Peer, jobs: int, job: str) -> list[float]:
    """Jobs a second; keeps what they took for ``spent``."""
    return cases.drained(
        stage, peer, jobs, job, PROCESSES, 0.0, lambda started: _watch(stage, peer, jobs, job, started)
    )


def spent(stage: Stage, peer: Peer, jobs: int, job: str, what: str) -> list[float]:
    """What a drain took, whose rate has been told, or one more: ``processor`` µs a job, or ``memory`` MB."""
    kept = stage.spent[peer.name, job, what]
    if not kept:
        drained(stage, peer, jobs, job)
    return [kept.popleft()]


def _watch(stage: Stage, peer: Peer, jobs: int, job: str, started: list[psutil.Process]) -> None:
    """All processes, the master too; those of a queue are there once some of its jobs have run."""
    first = _after(stage, _FROM * jobs)
    processes = family(started)
    before = _seconds(processes)
    last = _after(stage, _TO * jobs)
    stage.spent[peer.name, job, "processor"].append(1e6 * (_seconds(processes) - before) / (last - first))
    stage.spent[peer.name, job, "memory"].append(cases.shared_memory(processes))


def _after(stage: Stage, jobs: float) -> int:
    """How many have begun, as soon as it is so many."""
    until(lambda: _looked(stage) >= jobs, LONG)
    return len(stage.trail)


def _looked(stage: Stage) -> int:
    time.sleep(0.02)  # so that looking costs the workers nothing
    return len(stage.trail)


def _seconds(processes: list[psutil.Process]) -> float:
    """Of the processors that they have used so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)
