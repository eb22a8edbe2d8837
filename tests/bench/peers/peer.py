"""What is asked of each queue that is measured."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

#: where programs of this virtual environment are
BIN = Path(sys.executable).parent
#: jobs that are handed to a queue at once, where it takes many
_AT_ONCE = 1000
#: of queues that run coroutines
CONCURRENT = (
    "Its jobs are coroutines: while some sleep, others run in the same process. Here a process runs one job, so that "
    "it can be killed whatever it does, unless its pool has a `concurrency`."
)
#: the comparisons: the usual ones; a steady rate; many coroutines at once; the same on PostgreSQL, and no-ops there
USUAL, PACED, MANY, POSTGRES, POSTGRES_NOOPS = "usual", "paced", "many", "postgres", "no-ops on postgres"
#: the comparisons that need PostgreSQL
ON_POSTGRES = frozenset({POSTGRES, POSTGRES_NOOPS})
#: of queues whose workers run what comes, as they are usually run
AS_USUAL = frozenset({USUAL, PACED})


class Peer(Protocol):
    """One queue, in the configuration that its own documentation recommends for speed."""

    name: str
    #: that configuration, for the report
    settings: str
    #: whether a job whose worker is killed is meant to run again; whether its own code pushes here
    keeps: bool
    pushes: bool
    #: the comparisons that it takes part in
    fields: frozenset[str]
    #: why it is ahead, by what a case is about; where it says nothing, the usual reason holds
    strengths: dict[str, str]

    def push(self, job: str, n: int) -> None:
        """One job, as an application would."""

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        """Many, in the best way that it has."""

    def commands(self, workers: int) -> list[list[str]]:
        """What to start, so that so many jobs run at once in processes of their own."""


def push_singly(peer: Peer, jobs: int, pause: float) -> list[float]:
    """Gives when each was pushed: at a random moment of its own part of the time, so that nothing falls into step."""
    began, pushed = time.monotonic(), list[float]()
    for n in range(jobs):
        time.sleep(max(0.0, began + (n + random.random()) * pause - time.monotonic()))
        pushed.append(time.monotonic())
        peer.push("noop", n)
    return pushed


def url() -> str:
    """The server's: of the process that asks, for workers may reach it by another way."""
    return os.environ["BENCH_URL"]


def database() -> str:
    """The URL of PostgreSQL's, for those that keep their jobs there."""
    return os.environ["BENCH_POSTGRES"]


def batches(numbers: Sequence[int], size: int = _AT_ONCE) -> Iterator[Sequence[int]]:
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]
