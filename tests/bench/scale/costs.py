"""What workers and stewards cost their store: ``python -m tests.bench.scale.costs``, which is ``scripts/bench --costs``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.bench.rig import ROOT, Rig, redis_rig
from tests.bench.scale import costs_report
from tests.bench.scale.costs_report import Cost
from tests.bench.tables import execute, kind, sql_rig
from tests.bench.words import QUICK, say

#: pools, and workers of each: one small and one large for the formula, the others to see whether it holds
REDIS, POSTGRES = [(1, 4), (1, 64), (1, 16), (4, 4)], [(1, 4), (1, 16), (4, 4)]
#: seconds: before a look, of an idle store, of a busy one; a session of PostgreSQL reports up to ten seconds late
_CALM, _IDLE, _BUSY = (2.0, 8.0, 3.0) if QUICK else (4.0, 30.0, 6.0)
#: jobs a second that a worker does, at most, of those that take ten milliseconds
_RATE = 100


class _Seen(NamedTuple):
    """Of the server so far, at a monotonic moment in seconds."""

    at: float
    requests: int
    commands: int
    #: of a processor
    seconds: float
    waiting: int


def main() -> None:
    into = ROOT / ("build" if QUICK else "docs")
    into.mkdir(exist_ok=True)
    with redis_rig() as rig:
        on_redis = list(_measured(rig, REDIS))
    with sql_rig("postgres") as rig:
        on_postgres = list(_measured(rig, POSTGRES))
    costs_report.write(into / "scale.md", on_redis, on_postgres)


def _measured(rig: Rig, sizes: Sequence[tuple[int, int]]) -> Iterator[Cost]:
    for pools, workers in sizes:
        cost = _cost(rig, pools, workers)
        say(f"{kind(rig)}: {cost}")
        yield cost


def _cost(rig: Rig, pools: int, workers: int) -> Cost:
    ours = _connections(rig)
    with ExitStack() as stack:
        for number in range(pools):
            stack.enter_context(rig.pool(workers, "--runtime-dir", str(rig.path / f"run{number}")))
        time.sleep(_CALM)
        connections = _connections(rig) - ours
        idle, idle_seconds = _between(rig, _IDLE)
        _fill(rig, int(pools * workers * _RATE * (_BUSY + 2.0)))
        busy, busy_seconds = _between(rig, _BUSY)
        _empty(rig)
    jobs = -busy.waiting
    return Cost(
        pools,
        pools * workers,
        connections,
        idle.requests / idle_seconds,
        idle.commands / idle_seconds,
        100 * idle.seconds / idle_seconds,
        jobs / busy_seconds,
        busy.requests / jobs,
        busy.commands / jobs,
        1e6 * busy.seconds / jobs,
    )
