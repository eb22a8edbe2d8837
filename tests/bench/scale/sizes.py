"""Each thing that grows, and what is measured at each of its sizes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from queuepool.stores.factory import is_redis
from tests.bench.rig import Rig
from tests.bench.scale import steps
from tests.bench.scale.fill import Filler
from tests.bench.scale.rows import Rows
from tests.bench.scale.steps import DRAINED, ROUNDS, Source
from tests.bench.words import QUICK

#: figures by their column, at one size
Row = dict[str, float]
_MICRO, _MILLI = 1e6, 1e3
_JOBS = [1_000, 10_000, 100_000, *([] if QUICK else [1_000_000])]
#: where jobs are made, and where the pool looks for them
_ASIDE, _HERE = "aside", "default"
RESERVE, PUSH, START = "settle one and reserve one, µs", "push, µs", "push to start, ms"
RATE, NAPS, IDLE = "drained, jobs/s", "jobs of 10 ms drained, jobs/s", "idle, % of a processor"
VOLUME, EACH, REST = "volume, MB/s", "memory of an idle worker, MB", "of master and steward, MB"


class Scale(NamedTuple):
    """``by_log``: of the jobs that are there no step may cost more than their logarithm grows."""

    title: str
    unit: str
    text: str
    sizes: list[int]
    measure: Callable[[Rig, int], Row]
    by_log: bool = False


def jobs(rig: Rig, size: int, kind: str) -> Row:
    """So many ``waiting``, ``delayed`` or ``reserved`` jobs, and a pool of two that drains others before them."""
    filler = Filler(rig) if is_redis(rig.connection.url) else Rows(rig)
    getattr(filler, kind)(_ASIDE, size)
    filler.waiting(_ASIDE, steps.STEPS * steps.BURSTS)
    row = _steps(rig, [_ASIDE], steps.STEPS)
    with rig.pool(2):
        row[RATE] = _rate(filler, DRAINED)
        if kind != "waiting":  # else it waits for its turn
            row[START] = _MILLI * steps.started(rig)
    for queue in (_ASIDE, _HERE):
        filler.empty(queue)
    return row


def queues(rig: Rig, size: int) -> Row:
    """In the list of each worker; the jobs are in the last one."""
    filler, names = Filler(rig), [*(f"empty-{n}" for n in range(1, size)), _HERE]
    filler.waiting(_HERE, steps.STEPS * steps.BURSTS)
    row = _steps(rig, names, steps.STEPS)
    filler.empty(_HERE)
    with rig.pool(2, "--queue", ",".join(names)):
        row[RATE] = _rate(filler, DRAINED)
        row[START] = _MILLI * steps.started(rig)
        row[IDLE] = 100 * _share(rig, 1.0 if QUICK else 3.0)
    return row


def workers(rig: Rig, size: int) -> Row:
    """Of one pool."""
    filler = Filler(rig)
    with rig.pool(size):
        row = {RATE: _rate(filler, DRAINED), NAPS: _rate(filler, 100 * size, job="nap")}
        row[START] = _MILLI * steps.started(rig)
        master, steward, *rest = rig.memory()
        row |= {EACH: statistics.fmean(rest), REST: master + steward, IDLE: 100 * _share(rig, 1.0 if QUICK else 3.0)}
    return row


def payloads(rig: Rig, size: int) -> Row:
    """Of so many bytes of data each, without what every payload says of its job."""
    filler, padding, few = Filler(rig), size * "x", max(5, steps.STEPS // (1 + size // 10_000))
    filler.waiting(_ASIDE, few * steps.BURSTS, padding=padding)
    row = _steps(rig, [_ASIDE], few, padding)
    filler.empty(_ASIDE)
    with rig.pool(2, "--memory", "0"):
        row[RATE] = _rate(filler, max(20, min(DRAINED, 200_000_000 // (size + 1))), padding=padding)
    return row | {VOLUME: row[RATE] * size / 1e6}


def _steps(rig: Rig, names: list[str], times: int, padding: str = "") -> Row:
    """Of jobs that wait in the last of these queues."""
    return {
        RESERVE: _MICRO * steps.quietest(lambda: steps.reserve(rig, names, times)),
        PUSH: _MICRO * steps.quietest(lambda: steps.push(rig, names[-1], times, padding)),
    }


def _rate(filler: Source, jobs: int, **kind: str) -> float:
    """The median of some rounds; ``kind``: which job, if not a no-op."""
    figures = list[float]()
    for _ in range(ROUNDS):
        filler.waiting(_ASIDE, jobs, **kind)
        figures.append(steps.drained(filler, _ASIDE, _HERE, jobs))
        filler.take_back(_HERE, _ASIDE)
    return statistics.median(figures)


def _share(rig: Rig, seconds: float) -> float:
    busy = rig.seconds_of_processor()
    time.sleep(seconds)
    return (rig.seconds_of_processor() - busy) / seconds


def _kind(kind: str, text: str) -> Scale:
    return Scale(f"{kind} jobs", "jobs", text, _JOBS, partial(jobs, kind=kind), by_log=True)


#: on a database too
JOBS = [
    _kind("waiting", "So many wait in the queue when a step is measured, and are left there when a drain ends."),
    _kind("delayed", "Beside so many jobs of the same queue that are due tomorrow."),
    _kind("reserved", "Beside so many jobs of the same queue that somebody holds."),
]
EVERY = [
    *JOBS,
    Scale(
        "queues",
        "queues in a worker's list",
        "The jobs are in the last; all others are looked at.",
        [1, 10, 100, 1000],
        queues,
    ),
    Scale("workers", "workers", "Of one pool.", [1, 2, 8, 16, 64], workers),
    Scale(
        "payloads",
        "bytes of data",
        "What every payload says of its job comes on top.",
        [100, 1000, 100_000, 5_000_000],
        payloads,
    ),
]
