"""What is measured at each size: the steps of a worker and of a producer one by one, and a pool that drains."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from queuepool.payload.lease import Lease
from tests.bench import latency
from tests.bench.rig import Rig
from tests.bench.scale.fill import Filler
from tests.bench.scale.rows import Rows
from tests.bench.words import QUICK

Source = Filler | Rows
#: how often a step is timed at once, and how many times so, with a pause between
STEPS, BURSTS, _PAUSE = (100, 2, 0.1) if QUICK else (100, 6, 0.2)
#: drains and their jobs; pushes to an idle pool
ROUNDS, DRAINED, PUSHES = (1, 10_000, 30) if QUICK else (3, 20_000, 60)
#: seconds after which a burst says enough
_LONG = 1.0
#: the part at each end of a drain that is left out
_EDGE = 0.1


def quietest(step: Callable[[], float]) -> float:
    """Of some bursts the one that was least disturbed: what else the machine does is no step of ours."""
    figures = list[float]()
    for _ in range(BURSTS):
        figures.append(step())
        time.sleep(_PAUSE)
    return min(figures)


def reserve(rig: Rig, queues: Sequence[str], times: int) -> float:
    """Seconds of a round trip that settles one job and reserves the next: the median."""
    store, done = rig.stores.queue, list[Lease]()
    tag, taken = store.join(), list[float]()
    while len(taken) < times and sum(taken) < _LONG:
        began = time.perf_counter()
        done = store.reserve(queues, tag, 1, done).leases
        taken.append(time.perf_counter() - began)
    store.delete(done)
    return statistics.median(taken)


def push(rig: Rig, queue: str, times: int, padding: str = "") -> float:
    """Seconds of a push of one job: the median."""
    data = {"n": 0, "padding": padding} if padding else {"n": 0}
    return statistics.median(_seconds(lambda: rig.queue.push("noop", data, queue=queue)) for _ in range(times))


def drained(filler: Source, source: str, queue: str, jobs: int) -> float:
    """Jobs a second, so many of them, of the pool that serves ``queue`` and is given all of ``source`` at once."""
    least = filler.left(source) - jobs
    filler.move(source, queue)
    first, began = _passed(filler, queue, least + int((1 - _EDGE) * jobs))
    last, ended = _passed(filler, queue, least + int(_EDGE * jobs))
    _passed(filler, queue, least)
    return (first - last) / (ended - began)


def started(rig: Rig) -> float:
    """Seconds from a push to the first line of its job, on an idle pool: the median."""
    return statistics.median(latency.push_to_start(rig, PUSHES))


def _passed(filler: Source, queue: str, most: int) -> tuple[int, float]:
    """How many were left, and when, as soon as there are at most so many."""
    left = filler.left(queue)
    while left > most:
        time.sleep(filler.pause)
        left = filler.left(queue)
    return left, time.monotonic()


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
