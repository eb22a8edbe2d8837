"""How each thing is measured of one queue; every run waits until every job has run."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import cpu_count
from subprocess import Popen

import psutil

from tests.bench.peers.peer import Peer
from tests.bench.peers.sizing import LONG
from tests.bench.peers.stage import Stage, family
from tests.bench.peers.trail import rate_of
from tests.bench.rig import until

Watch = Callable[[list[psutil.Process]], object]
#: jobs that make workers warm
_FEW = 60
#: the part by which memory may change within a third of a second, and count as what it is
_STILL = 0.01


def drained(
    stage: Stage, peer: Peer, jobs: int, job: str, workers: int, delay: float, watch: Watch | None = None
) -> list[float]:
    """Jobs a second, of a queue that is full already when its workers start; ``watch`` is given their processes."""
    _run(stage, peer, jobs, job, workers, delay, watch)
    rate = rate_of(stage.trail.notes())
    stage.rates[peer.name, job, workers, delay].append(rate)
    return [rate]


def drained_beside(stage: Stage, peer: Peer, jobs: int, apart: bool) -> list[float]:
    """No-ops a second with two workers, while a loop for each processor is busy; ``apart``: in sessions of their own.

    Linux shares processors by session where it may (sched_autogroup_enabled): who shares them with whom decides.
    """
    with busy(apart):
        _run(stage, peer, jobs, "noop", 2, 0.0)
    return [rate_of(stage.trail.notes())]


@contextmanager
def busy(apart: bool) -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    loops = [Popen(command, start_new_session=apart) for _ in range(cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def emptied(stage: Stage, peer: Peer, jobs: int, workers: int, wanted: int) -> list[float]:
    """Seconds from the start of the workers to the last of so many no-ops; of fewer, reckoned up from the first on."""
    started = _run(stage, peer, jobs, "noop", workers, 0.0)
    times = [note.began for note in stage.trail.notes()]
    if jobs < wanted:
        stage.asides.fewer[peer.name] = jobs
    return [min(times) - started + (max(times) - min(times)) * wanted / jobs]


def pushed_singly(stage: Stage, peer: Peer, jobs: int) -> list[float]:
    """Jobs a second, one after the other."""
    stage.clear()
    began = time.monotonic()
    for n in range(jobs):
        peer.push("noop", n)
    return [jobs / (time.monotonic() - began)]


def pushed_in_bulk(stage: Stage, peer: Peer, jobs: int) -> list[float]:
    stage.clear()
    began = time.monotonic()
    peer.bulk("noop", range(jobs))
    return [jobs / (time.monotonic() - began)]


def latencies(stage: Stage, peer: Peer, jobs: int) -> list[float]:
    """Milliseconds from before each push to the first line of its job, on two idle workers."""
    taken = []
    with stage.workers(peer, 2):
        warm(stage, peer)
        for n in range(jobs):
            stage.trail.forget()
            pushed = time.monotonic()
            peer.push("noop", n)
            until(lambda: len(stage.trail))
            taken.append(1000 * (stage.trail.notes()[0].began - pushed))
            time.sleep(random.uniform(0.005, 0.02))  # the worker is to be waiting again
    return taken


def memory(stage: Stage, peer: Peer, jobs: int, workers: int) -> list[float]:
    """MB of all processes of so many idle workers, when all have come; a page that they share counts once."""
    with stage.workers(peer, workers) as started:
        warm(stage, peer)
        before, now = 0.0, _used(started)
        while abs(now - before) > _STILL * now:
            time.sleep(0.3)
            before, now = now, _used(started)
        return [now]


def _used(started: list[psutil.Process]) -> float:
    return shared_memory(family(started))


def shared_memory(processes: list[psutil.Process]) -> float:
    """MB, of which each of them has its part (PSS)."""
    return sum(float(process.memory_full_info().pss) for process in processes) / 2**20


def warm(stage: Stage, peer: Peer) -> None:
    """The workers have imported what they need, and wait."""
    stage.clear()
    peer.bulk("noop", range(_FEW))
    until(lambda: is_done(stage, _FEW))
    time.sleep(0.5)
    stage.trail.forget()


def is_done(stage: Stage, jobs: int) -> bool:
    time.sleep(0.02)  # so that looking costs the workers nothing
    return stage.trail.has_all(jobs)


def _run(
    stage: Stage, peer: Peer, jobs: int, job: str, workers: int, delay: float, watch: Watch | None = None
) -> float:
    """Push, then start the workers; gives when."""
    stage.clear()
    peer.bulk(job, range(jobs))
    started = time.monotonic()
    with stage.workers(peer, workers, delay) as processes:
        if watch:
            watch(processes)
        until(lambda: is_done(stage, jobs), LONG)
    stage.asides.doubles[peer.name] += len(stage.trail) - jobs
    return started
