"""This one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from queuepool import job
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.bench.peers import jobs
from tests.bench.peers.peer import url

for _name, _function in jobs.JOBS.items():
    job(_name, tries=0)(_function)
for _name, _function in jobs.RUNAWAYS.items():
    job(_name, tries=1, timeout=jobs.LIMIT)(_function)


class Queuepool:
    name = "queuepool"
    settings = "defaults: reserve ahead by its own measure, leases renewed, JSON"
    keeps = True
    pushes = True
    strengths: dict[str, str] = {}

    def __init__(self) -> None:
        self._queue = Queue(ConnectionSettings(url=url()))

    def push(self, job: str, n: int) -> None:
        self._queue.push(job, {"n": n})

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        self._queue.bulk([(job, {"n": n}) for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        words = [sys.executable, "-m", "queuepool", "start", "--url", "$BENCH_URL", "--modules", __name__]
        return [[*words, "--workers", str(workers), "--runtime-dir", os.environ["BENCH_RUNTIME"], "--quiet"]]


PEERS = [Queuepool()]
