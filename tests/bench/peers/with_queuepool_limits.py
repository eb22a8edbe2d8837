"""This queue's limits. One try each: waiting uses up none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from queuepool import Concurrency, configure, current, job
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.bench.peers.holding import hold
from tests.bench.peers.peer import url
from tests.bench.rig import PATIENCE


@job("one", tries=1, limits=[Concurrency("one", 1)])
def one(n: int, seconds: float) -> None:
    hold(n, seconds, current().attempts)


@job("two", tries=1, limits=[Concurrency("two", 2)])
def two(n: int, seconds: float) -> None:
    hold(n, seconds, current().attempts)


class QueuepoolLimits:
    name = "queuepool"
    settings = "`Concurrency`, `tries=1`"

    def push(self, places: int, numbers: Iterable[int], seconds: float) -> None:
        configure(Queue(ConnectionSettings(url=url(), timeout=PATIENCE)))
        (one, two)[places - 1].bulk([{"n": n, "seconds": seconds} for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        place = ["--url", "$BENCH_URL", "--runtime-dir", os.environ["BENCH_RUNTIME"]]
        words = [sys.executable, "-m", "queuepool", "start", "--modules", __name__, "--workers", str(workers), *place]
        return [[*words, "--quiet"]]


QUEUES = [QueuepoolLimits()]
