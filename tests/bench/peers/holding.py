"""A job that holds a place of a limit, as every queue runs it, and what follows from its notes."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.bench.records import whole

#: number of the job, monotonic seconds, pid; which attempt it is, 0 = it ends
_RECORD = struct.Struct("=qdqq")


class LimitedQueue(Protocol):
    """One queue whose jobs share one place, or two."""

    name: str
    #: for the report
    settings: str

    def push(self, places: int, numbers: Iterable[int], seconds: float) -> None:
        """Jobs of a limit of so many places, each of which holds one for so long."""

    def commands(self, workers: int) -> list[list[str]]:
        """What to start, so that so many jobs run at once in processes of their own."""


class Moment(NamedTuple):
    """A job has begun its attempt of this number, or has ended: 0."""

    n: int
    at: float
    pid: int
    attempt: int


def hold(n: int, seconds: float, attempt: int) -> None:
    """To be called while the job has its place."""
    trail = os.open(os.environ["BENCH_TRAIL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(trail, _RECORD.pack(n, time.monotonic(), os.getpid(), attempt))
    time.sleep(seconds)
    os.write(trail, _RECORD.pack(n, time.monotonic(), os.getpid(), 0))
    os.close(trail)


def moments(trail: Path) -> list[Moment]:
    """In their order."""
    return sorted((Moment(*fields) for fields in whole(_RECORD, trail.read_bytes())), key=lambda one: one.at)


def held(found: list[Moment]) -> list[int]:
    """How many places are taken from each of the moments on."""
    return list(accumulate(1 if one.attempt else -1 for one in found))


def waits(found: list[Moment], places: int) -> list[float]:
    """Seconds for which each place that was given back stayed free, while there was a job that has taken it since."""
    begins = [one.at for one in found if one.attempt]
    ends = [one.at for one in found if not one.attempt]
    return [begin - end for begin, end in zip(begins[places:], ends, strict=False)]
