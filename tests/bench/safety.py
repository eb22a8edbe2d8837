"""What it costs that nothing is lost: a worker beside itself without parts of its safety, and beside a bare loop.

Without fences it makes Laravel's own reservations, as every worker of these queues must. Without leases it pops from a
list, as queues do that run a job once at most; what goes with that is more than leases: staging, attempts, the look at
each payload. So that figure is the most that safety may cost.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

from tests.bench import throughput
from tests.bench.rig import Rig, until
from tests.bench.scale.fill import Filler
from tests.bench.words import QUICK, rates, say

#: what is measured, and the program that is started for it
_AS_IT_IS = "as it is"
_KINDS = {
    _AS_IT_IS: ["queuepool"],
    "without the hand": ["tests.bench.without", "hand"],
    "without hand and fences": ["tests.bench.without", "fences"],
    "without hand and leases": ["tests.bench.without", "leases"],
    "without these, alarm and title": ["tests.bench.without", "watch"],
}
_JOBS, _ROUNDS, _WARM = (10_000, 2, 2_000) if QUICK else (40_000, 11, 10_000)
#: jobs that the bare loop reserves at once; the share of its rate that is aimed at, the cost, that of meters
_AT_ONCE, _SHARE, _COST, _METERS = 16, 0.6, 0.10, 0.03


class Drain(NamedTuple):
    """Jobs a second; microseconds of processor for each job, of the worker and of the server."""

    rate: float
    worker: float
    server: float

    @property
    def processor(self) -> float:
        return self.worker + self.server


def measure(rig: Rig) -> None:
    """In turn, and compared round by round. Where others run, time of a processor says more than time."""
    bare = list[Drain]()
    drains: dict[str, list[Drain]] = {name: [] for name in _KINDS}
    for _ in range(_ROUNDS):
        bare.append(looped(rig))
        for name, program in _KINDS.items():
            drains[name].append(drained(rig, program))
    _say(f"bare loop, {_AT_ONCE} at a time", bare)
    for name, figures in drains.items():
        _say(f"one worker of a pool, {name}", figures)
    ours = drains.pop(_AS_IT_IS)
    say(f"  beside the bare loop {_share(ours, bare)}")
    for name, figures in drains.items():
        say(f"  beside itself {name}: {_cost(ours, figures, _COST)}")


def measure_meters(rig: Rig) -> None:
    """What it costs that a pool counts its jobs: in turn with itself without meters."""
    program, pairs = _KINDS[_AS_IT_IS], list[tuple[Drain, Drain]]()
    for _ in range(_ROUNDS):
        pairs.append((drained(rig, program), drained(rig, program, "--no-metrics")))
    ours, without = (list(figures) for figures in zip(*pairs, strict=True))
    say(f"meters: {_cost(ours, without, _METERS)}")


def looped(rig: Rig) -> Drain:
    throughput.fill(rig, _JOBS)
    return _drain(rig, psutil.Process(), lambda: throughput.loop(rig, _JOBS, _AT_ONCE))


def drained(rig: Rig, program: list[str], *flags: str) -> Drain:
    """One worker, whose queue is full at once."""
    filler = Filler(rig)
    rig.queue.clear()  # who holds without fences leaves something behind
    with rig.pool(1, *flags, program=program):
        worker = rig.family()[-1]
        for jobs in (_WARM, _JOBS):
            filler.waiting("aside", jobs)
            found = _drain(rig, worker, lambda: _give(filler))
    return found


def _give(filler: Filler) -> None:
    filler.move("aside", "default")
    until(lambda: filler.left("default") == 0)


def _drain(rig: Rig, worker: psutil.Process, action: Callable[[], object]) -> Drain:
    before = _clocks(rig, worker)
    action()
    spent, server, wall = (now - then for now, then in zip(_clocks(rig, worker), before, strict=True))
    return Drain(_JOBS / wall, 1e6 * spent / _JOBS, 1e6 * server / _JOBS)


def _clocks(rig: Rig, worker: psutil.Process) -> tuple[float, float, float]:
    """Seconds of the worker's processor, of the server's, of everybody's clock."""
    server, own = rig.stores.client.command("INFO", "cpu"), worker.cpu_times()
    return own.user + own.system, server["used_cpu_user"] + server["used_cpu_sys"], time.monotonic()


def _say(what: str, figures: list[Drain]) -> None:
    rates(what, [one.rate for one in figures])
    worker, server = (statistics.median(values) for values in list(zip(*figures, strict=True))[1:])
    say(f"  of a processor for each job: worker {worker:.1f} µs, server {server:.1f} µs")


def _share(ours: list[Drain], bare: list[Drain]) -> str:
    pairs = list(zip(ours, bare, strict=True))
    rate = statistics.median(mine.rate / other.rate for mine, other in pairs)
    processor = statistics.median(other.processor / mine.processor for mine, other in pairs)
    return f"{rate:.2f}, by the processors' time {processor:.2f}; the aim, {_SHARE}, is {_met(rate >= _SHARE)}"


def _cost(ours: list[Drain], without: list[Drain], aim: float) -> str:
    """What the same loop does faster, as a part of what ours takes: of time, and of processors."""
    pairs = list(zip(ours, without, strict=True))
    slower = statistics.median(1 - mine.rate / other.rate for mine, other in pairs)
    dearer = statistics.median(1 - other.processor / mine.processor for mine, other in pairs)
    by_time, by_processor = _met(slower <= aim), _met(dearer <= aim)
    return (
        f"{slower:.1%} slower, {dearer:.1%} of the processors' time; "
        f"the aim, {aim:.0%}, is {by_time} by the first, {by_processor} by the second"
    )


def _met(met: bool) -> str:
    return "met" if met else "not met"
