"""What is measured, in which unit, and how often."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tests.bench.peers import cases, deaths, load, many, sizing
from tests.bench.peers.peer import MANY, PACED, POSTGRES, POSTGRES_NOOPS, USUAL, Peer
from tests.bench.peers.stage import Stage
from tests.bench.words import QUICK, say

_ROUNDS, _FEW_ROUNDS = (2, 1) if QUICK else (3, 3)
#: of the case that most aims are about: a machine's speed is another one from minute to minute
_MORE_ROUNDS = 3 * _ROUNDS
#: of one drain, of one half load, and of one comparison that would take longer
_SECONDS, _LOADED, _AFFORDED = (0.7, 1.0, 3.0) if QUICK else (1.2, 2.0, 3.0)
#: of one drain of many coroutines, whose processors' time is read from a clock that counts hundredths of a second
_MANY_SECONDS = 1.5 if QUICK else 3.0
#: jobs a second
_PACES, _PACES_ON_POSTGRES = [50, 300, 700, 1000], [50, 300, 600]
#: of the comparison that is most often quoted
_PUBLIC_JOBS, _PUBLIC_WORKERS = 2000 if QUICK else 20_000, 10

#: of no-ops on PostgreSQL
_OUR_NOOPS_THERE = "queuepool, one at a time, on PostgreSQL"

#: by case and queue
Results = dict[str, dict[str, list[float]]]


class Case(NamedTuple):
    """``jobs`` gives with how many; of several values of one round (latencies) all count.

    ``about``: what a queue must be good at to be ahead here; its reasons go by this. ``field``: which queues take part;
    ``ours``: which of this one's ways stands beside them.
    """

    title: str
    unit: str
    about: str
    measure: Callable[[Stage, Peer, int], list[float]]
    jobs: Callable[[Stage, Peer], int]
    rounds: int = _ROUNDS
    field: str = USUAL
    ours: str = "queuepool"


def _drain(title: str, job: str, workers: int, delay: float = 0.0, rounds: int = _ROUNDS) -> Case:
    kind = {"job": job, "workers": workers, "delay": delay}
    measure, jobs = partial(cases.drained, **kind), partial(sizing.fitting, seconds=_SECONDS, **kind)
    return Case(title, "jobs/s", "drain" if job == "noop" else "sleep", measure, jobs, rounds)


def _of_many(title: str, job: str, unit: str, field: str, ours: str, what: str = "") -> Case:
    measure = partial(many.spent, what=what, job=job) if what else partial(many.drained, job=job)
    jobs = partial(sizing.fitting, job=job, workers=many.PROCESSES, delay=0.0, seconds=_MANY_SECONDS)
    return Case(title, unit, what or "many", measure, jobs, _ROUNDS, field, ours)


def _beside(title: str, measure: Callable[[Stage, Peer, int], list[float]]) -> Case:
    jobs = partial(sizing.fitting, job="noop", workers=2, delay=0.0, seconds=_SECONDS)
    return Case(title, "jobs/s", "many", measure, jobs, _ROUNDS, POSTGRES_NOOPS, _OUR_NOOPS_THERE)


def _paced(title: str, pace: int, field: str, ours: str = "queuepool") -> Case:
    measure, jobs = partial(load.at_pace, pace=pace), _always(int(_LOADED * pace))
    return Case(title, "ms", "latency", measure, jobs, field=field, ours=ours)


def _always(jobs: int) -> Callable[[Stage, Peer], int]:
    return lambda _stage, _peer: jobs


DRAINS = [
    _drain("no-op, 1 worker", "noop", 1),
    _drain("no-op, 2 workers", "noop", 2, rounds=_MORE_ROUNDS),
    _drain("no-op, 2 workers, server 1 ms away", "noop", 2, 0.001),
    _drain("no-op, 2 workers, server 2 ms away", "noop", 2, 0.002),
    _drain("1 ms, 2 workers", "nap1", 2),
    _drain("10 ms, 2 workers", "nap10", 2),
]
PUSHES = [
    Case("one by one", "jobs/s", "push", cases.pushed_singly, _always(300 if QUICK else 2000)),
    Case("in bulk", "jobs/s", "push", cases.pushed_in_bulk, _always(1000 if QUICK else 5000)),
]
LATENCIES = [
    Case("push to start, 2 idle workers", "ms", "latency", cases.latencies, _always(40 if QUICK else 100)),
    Case("push to start, half load", "ms", "latency", load.at_half_load, partial(load.half, seconds=_LOADED)),
]
_OURS_OF_MANY, _OURS_ON_POSTGRES = "queuepool, 100 at once", "queuepool on PostgreSQL"
COROUTINES = [
    _of_many("10 ms coroutines", "nap10", "jobs/s", MANY, _OURS_OF_MANY),
    _of_many("1 ms coroutines", "nap1", "jobs/s", MANY, _OURS_OF_MANY),
    _of_many("a processor's time for a 10 ms coroutine", "nap10", "µs", MANY, _OURS_OF_MANY, "processor"),
    _of_many("a processor's time for a 1 ms coroutine", "nap1", "µs", MANY, _OURS_OF_MANY, "processor"),
    _of_many("memory while 10 ms coroutines run", "nap10", "MB", MANY, _OURS_OF_MANY, "memory"),
]
ON_POSTGRES = [
    _of_many("10 ms coroutines, PostgreSQL", "nap10", "jobs/s", POSTGRES, _OURS_ON_POSTGRES),
    _of_many("a processor's time for each, PostgreSQL", "nap10", "µs", POSTGRES, _OURS_ON_POSTGRES, "processor"),
    _of_many("memory meanwhile, PostgreSQL", "nap10", "MB", POSTGRES, _OURS_ON_POSTGRES, "memory"),
]
POSTGRES_DRAINS = [
    _beside("no-op, PostgreSQL", partial(cases.drained, job="noop", workers=2, delay=0.0)),
    _beside("no-op, PostgreSQL, busy", partial(cases.drained_beside, apart=False)),
    _beside("no-op, PostgreSQL, busy apart", partial(cases.drained_beside, apart=True)),
]
PACED_LATENCIES = [_paced(f"push to start, {pace:,} jobs a second", pace, PACED) for pace in _PACES]
POSTGRES_LATENCIES = [
    _paced(f"push to start, PostgreSQL, {pace:,} jobs a second", pace, POSTGRES_NOOPS, _OUR_NOOPS_THERE)
    for pace in _PACES_ON_POSTGRES
]
MEMORIES = [
    Case(f"memory, {count} idle workers", "MB", "memory", partial(cases.memory, workers=count), _always(0), _FEW_ROUNDS)
    for count in (2, 8)
]
DEATHS = [
    Case("killed worker's job starts again", "s", "death", deaths.recovery, _always(0), _FEW_ROUNDS),
    Case("runaway in Python dies", "s", "death", partial(deaths.overdue, job="stuck"), _always(0), _FEW_ROUNDS),
    Case("runaway in C dies", "s", "death", partial(deaths.overdue, job="stuck_in_c"), _always(0), _FEW_ROUNDS),
]
PUBLIC = Case(
    f"{_PUBLIC_JOBS:,} no-ops, {_PUBLIC_WORKERS} workers, from start to end",
    "s",
    "drain",
    partial(cases.emptied, workers=_PUBLIC_WORKERS, wanted=_PUBLIC_JOBS),
    partial(sizing.affordable, wanted=_PUBLIC_JOBS, seconds=_AFFORDED),
    _FEW_ROUNDS,
)
EVERY = [*DRAINS, *PUSHES, *LATENCIES, *MEMORIES, *DEATHS, PUBLIC, *COROUTINES, *ON_POSTGRES, *PACED_LATENCIES]
EVERY += [*POSTGRES_DRAINS, *POSTGRES_LATENCIES]
#: what the picture shows
CHARTED = [DRAINS[1], DRAINS[3], DRAINS[5]]


def interleaved(stage: Stage, peers: list[Peer], case: Case) -> dict[str, list[float]]:
    """All values, by queue. Round by round, in a new order each time: what the machine does beside this hits all."""
    began = time.monotonic()
    concerned = [peer for peer in peers if case.field in peer.fields and (peer.pushes or case not in PUSHES)]
    jobs = {peer.name: case.jobs(stage, peer) for peer in concerned}
    taken: dict[str, list[float]] = {peer.name: [] for peer in concerned}
    for _ in range(case.rounds):
        for peer in random.sample(concerned, len(concerned)):
            if math.inf in taken[peer.name]:
                continue  # what did not happen once is not waited for again
            values = case.measure(stage, peer, jobs[peer.name])
            taken[peer.name] += values
            say(f"{case.title}: {peer.name}: {statistics.median(values):,.3f} {case.unit}")
    say(f"{case.title}: {time.monotonic() - began:.0f} s in all")
    return taken
