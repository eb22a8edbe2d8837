"""The loads: when jobs come, and how long each takes. The same seed gives the same load."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, log

from tests.bench.autoscale.world import Arrival

MINUTE = 60.0
#: half an hour
WHOLE = 30 * MINUTE
#: when a load with a step takes it
STEP = 5 * MINUTE
#: how unlike each other jobs are: the standard deviation of the logarithm of their run times
_SPREAD = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """``words`` say what it is. Waits are judged of the jobs that come between ``since`` and ``until``."""

    words: str
    made: Callable[[random.Random], list[Arrival]]
    boot: float = 0.5
    since: float = 0.0
    until: float = WHOLE


def coming(rate: Callable[[float], float], most: float, takes: float) -> Callable[[random.Random], list[Arrival]]:
    """By chance, ``rate`` jobs a second and never above ``most``, which take ``takes`` s on average."""
    return lambda chance: list(_by_chance(rate, most, takes, chance))


def _by_chance(rate: Callable[[float], float], most: float, takes: float, chance: random.Random) -> Iterator[Arrival]:
    now = chance.expovariate(most)
    while now < WHOLE:
        if chance.random() * most < rate(now):
            yield Arrival(now, _duration(takes, chance))
        now += chance.expovariate(most)


def _duration(mean: float, chance: random.Random) -> float:
    return exp(chance.gauss(log(mean) - _SPREAD**2 / 2, _SPREAD))


def _burst(chance: random.Random) -> list[Arrival]:
    return [Arrival(MINUTE + chance.uniform(0, 5), _duration(0.5, chance)) for _ in range(3000)]


def _saw(now: float) -> float:
    """From nothing to 40 a second, every five minutes."""
    return 40 * (now % (5 * MINUTE)) / (5 * MINUTE)


def _step(now: float) -> float:
    return 2.0 if now < STEP else 40.0


_FIRST = STEP + MINUTE
LONG = Load("long jobs, 0.2 a second of 60 s", coming(lambda _: 0.2, 0.2, 60.0))
LOADS = (
    Load("steady, 8 a second of 0.5 s", coming(lambda _: 8.0, 8.0, 0.5)),
    Load("step from 2 to 40 a second of 0.5 s, first minute", coming(_step, 40.0, 0.5), since=STEP, until=_FIRST),
    Load("the same, all that follows", coming(_step, 40.0, 0.5), since=STEP),
    Load("the same where a worker boots in 10 s", coming(_step, 40.0, 0.5), 10.0, since=STEP),
    Load("burst of 3,000 of 0.5 s in 5 s", _burst),
    Load("sawtooth, 0 to 40 a second of 0.5 s in 5 min", coming(_saw, 40.0, 0.5)),
    LONG,
    Load("one job of 0.5 s a minute", coming(lambda _: 1 / MINUTE, 1 / MINUTE, 0.5)),
    Load("no job at all", lambda _: []),
)
