"""What this queue is to reach in one run, on two cores with two workers, and whether it did."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

from tests.bench.peers.plan import (
    COROUTINES,
    DRAINS,
    LATENCIES,
    ON_POSTGRES,
    PACED_LATENCIES,
    POSTGRES_DRAINS,
    POSTGRES_LATENCIES,
    Case,
    Results,
)
from tests.bench.rig import percentile

OURS = "queuepool"
_NEAR, _FAR, _IDLE = DRAINS[1].title, DRAINS[3].title, LATENCIES[0]
#: how many times as quick as which queue
_TIMES = {"Huey": 5, "Laravel": 8, "Celery": 25, "Dramatiq": 50, "RQ": 200}
#: how many times as quick as each of the others, 2 ms away
_TIMES_FAR = 20
#: of many coroutines at once: how many times as quick as the best of the others
_TIMES_THE_BEST: dict[Case, float] = {COROUTINES[0]: 4, COROUTINES[1]: 3, ON_POSTGRES[0]: 2}
_TIMES_THE_BEST |= dict(zip(POSTGRES_DRAINS, (2, 1.5, 1.5), strict=True))
#: at most, the median: µs a job, MB, ms
_MOST = {COROUTINES[2]: 90.0, COROUTINES[4]: 90.0, _IDLE: 1.0, PACED_LATENCIES[-1]: 0.45}


class Aim(NamedTuple):
    """One row: what is wanted, what was measured, both in words, and whether it is enough."""

    wanted: str
    measured: str
    met: bool


def is_ours(name: str) -> bool:
    """Whatever way it is run."""
    return name.startswith(OURS)


def ratio(values: dict[str, list[float]], other: str, ours: str = OURS) -> float:
    """Round by round: the machine may have been busier in one than in another."""
    return statistics.median(mine / theirs for mine, theirs in zip(values[ours], values[other], strict=True))


def reached(results: Results) -> list[Aim]:
    """Of what was not measured, nothing."""
    near, far = results.get(_NEAR, {}), results.get(_FAR, {})
    aims = [_times(near, _NEAR, name, least) for name, least in _TIMES.items() if name in near]
    aims += [_times(far, _FAR, name, _TIMES_FAR) for name in far if name != OURS]
    for case, least in _TIMES_THE_BEST.items():
        aims += _times_the_best(results.get(case.title, {}), case, least)
    for case in POSTGRES_LATENCIES:
        aims += _as_soon_as_the_best(results.get(case.title, {}), case)
    return aims + [_at_most(results[case.title], case, most) for case, most in _MOST.items() if case.title in results]


def _times_the_best(values: dict[str, list[float]], case: Case, least: float) -> list[Aim]:
    """Without others, nothing."""
    others = {name: statistics.median(figures) for name, figures in values.items() if not is_ours(name)}
    return [_times(values, case.title, max(others, key=others.__getitem__), least, case.ours)] if others else []


def _times(values: dict[str, list[float]], case: str, name: str, least: float, ours: str = OURS) -> Aim:
    measured = ratio(values, name, ours)
    return Aim(f"{case}: ≥ {least} × {name}", f"{measured:.1f} ×", measured >= least)


def _as_soon_as_the_best(values: dict[str, list[float]], case: Case) -> list[Aim]:
    """Without others, nothing."""
    others = {name: percentile(figures, 0.5) for name, figures in values.items() if not is_ours(name)}
    if not others:
        return []
    best = min(others, key=others.__getitem__)
    return [_at_most(values, case, round(others[best], 2), f", {best}'s")]


def _at_most(values: dict[str, list[float]], case: Case, most: float, whose: str = "") -> Aim:
    p50 = percentile(values[case.ours], 0.5)
    return Aim(f"{case.title}: p50 ≤ {most:g} {case.unit}{whose}", f"{p50:.2f} {case.unit}", p50 <= most)


def in_words(aims: list[Aim], say: Callable[[list[str], list[list[str]]], str]) -> str:
    """A table, and how many were reached."""
    rows = [[aim.wanted, aim.measured, "met" if aim.met else "**not met**"] for aim in aims]
    return f"{say(['', 'measured', ''], rows)}\n\n{sum(aim.met for aim in aims)} of {len(aims)} are met."
