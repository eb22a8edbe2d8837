"""What this queue is to reach in one run, on two cores with two workers, and whether it did."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import NamedTuple

from tests.bench.peers.plan import DRAINS, LATENCIES, Results
from tests.bench.rig import percentile

OURS = "queuepool"
_NEAR, _FAR, _IDLE = DRAINS[1].title, DRAINS[3].title, LATENCIES[0].title
#: how many times as quick as which queue
_TIMES = {"Huey": 5, "Laravel": 8, "Celery": 25, "Dramatiq": 50, "RQ": 200}
#: how many times as quick as each of the others, 2 ms away; ms from a push to its start
_TIMES_FAR, _MOST_IDLE = 20, 1.0


class Aim(NamedTuple):
    """One row: what is wanted, what was measured, both in words, and whether it is enough."""

    wanted: str
    measured: str
    met: bool


def ratio(values: dict[str, list[float]], other: str) -> float:
    """Round by round: the machine may have been busier in one than in another."""
    return statistics.median(mine / theirs for mine, theirs in zip(values[OURS], values[other], strict=True))


def reached(results: Results) -> list[Aim]:
    """Of what was not measured, nothing."""
    near, far = results.get(_NEAR, {}), results.get(_FAR, {})
    aims = [_times(near, _NEAR, name, least) for name, least in _TIMES.items() if name in near]
    aims += [_times(far, _FAR, name, _TIMES_FAR) for name in far if name != OURS]
    return aims + [_idle(results[title]) for title in (_IDLE,) if title in results]


def _times(values: dict[str, list[float]], case: str, name: str, least: float) -> Aim:
    measured = ratio(values, name)
    return Aim(f"{case}: ≥ {least} × {name}", f"{measured:.1f} ×", measured >= least)


def _idle(values: dict[str, list[float]]) -> Aim:
    p50 = percentile(values[OURS], 0.5)
    return Aim(f"{_IDLE}: p50 ≤ {_MOST_IDLE:g} ms", f"{p50:.2f} ms", p50 <= _MOST_IDLE)


def in_words(aims: list[Aim], say: Callable[[list[str], list[list[str]]], str]) -> str:
    """A table, and how many were reached."""
    rows = [[aim.wanted, aim.measured, "met" if aim.met else "**not met**"] for aim in aims]
    return f"{say(['', 'measured', ''], rows)}\n\n{sum(aim.met for aim in aims)} of {len(aims)} are met."
