"""The simulations, and the tables in docs/autoscaling.md."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from queuepool.steward.wish import Aims
from tests.bench.autoscale.hosts import on_hosts
from tests.bench.autoscale.loads import LOADS, LONG, WHOLE, Load
from tests.bench.autoscale.supervisors import Horizon, Ours
from tests.bench.autoscale.world import Supervisor, World

FEWEST, MOST = 1, 50
AIMS = Aims(FEWEST, MOST, 10.0)
SEEDS = (1, 2, 3)
MARKER = "<!-- Written by scripts/bench --autoscale from here on. -->"
HOSTS = "## Several hosts"
#: those of which several hosts have anything to share
SHARED = (*LOADS[:5], LONG)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one load: waits in seconds, seconds of all workers together, and changes of direction; medians."""

    half: float
    late: float
    worker_seconds: float
    turns: float


def figures(load: Load, made: Callable[[int, int], Supervisor], seeds: Sequence[int] = SEEDS) -> Figures:
    """Of one way to scale, over some seeds."""
    found = [_once(load, made(FEWEST, MOST), seed) for seed in seeds]
    columns = zip(*((one.half, one.late, one.worker_seconds, one.turns) for one in found), strict=True)
    return Figures(*map(statistics.median, columns))


def _once(load: Load, supervisor: Supervisor, seed: int) -> Figures:
    arrivals = load.made(random.Random(seed))
    outcome = World(arrivals, supervisor, begins_with=FEWEST, boot=load.boot).run(WHOLE)
    waits = [outcome.wait(share, load.since, load.until) for share in (0.5, 0.95)]
    return Figures(*waits, outcome.worker_seconds, outcome.turns)


def table(seeds: Sequence[int] = SEEDS) -> list[str]:
    """In Markdown."""
    columns = ["p50, s", "p95, s", "workers, s", "changes"]
    head = " | ".join(["load", *columns, *(f"Horizon: {column}" for column in columns)])
    return [f"| {head} |", "| --- |" + " ---: |" * 8, *_rows(seeds)]


def _rows(seeds: Sequence[int]) -> Iterator[str]:
    for load in LOADS:
        cells = [cell for made in (Ours, Horizon) for cell in _cells(figures(load, made, seeds))]
        yield f"| {load.words} | {' | '.join(cells)} |"


def table_of_hosts(seeds: Sequence[int] = SEEDS) -> list[str]:
    """The same loads on one host and on several, ours alone; with the most workers of all hosts at any time."""
    head = "load | hosts | p50, s | p95, s | workers, s | changes of a host | most workers"
    return [
        f"| {head} |",
        "| --- |" + " ---: |" * 6,
        *(row for load in SHARED for row in _rows_of_hosts(load, seeds)),
    ]


def _rows_of_hosts(load: Load, seeds: Sequence[int]) -> Iterator[str]:
    for hosts in (1, 2, 3):
        worlds = [on_hosts(load.made(random.Random(seed)), hosts, AIMS, until=WHOLE, boot=load.boot) for seed in seeds]
        cells = [statistics.median(found) for found in zip(*(_of_hosts(load, world) for world in worlds), strict=True)]
        half, late, worker_seconds, turns, most = cells
        yield f"| {load.words} | {hosts} | {half:.1f} | {late:.1f} | {worker_seconds:,.0f} | {turns:.0f} | {most:.0f} |"


def _of_hosts(load: Load, world: World) -> tuple[float, float, float, float, float]:
    first, *_ = outcomes = world.outcomes
    sizes = zip(*(outcome.sizes for outcome in outcomes), strict=False)
    return (
        first.wait(0.5, load.since, load.until),
        first.wait(0.95, load.since, load.until),
        sum(outcome.worker_seconds for outcome in outcomes),
        max(outcome.turns for outcome in outcomes),
        max(map(sum, sizes)),
    )


def _cells(found: Figures) -> list[str]:
    return [f"{found.half:.1f}", f"{found.late:.1f}", f"{found.worker_seconds:,.0f}", f"{found.turns:.0f}"]
