"""This one: as it comes, with many coroutines at once, and these on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property

from queuepool import job
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.bench.peers import jobs
from tests.bench.peers.peer import AS_USUAL, MANY, PACED, POSTGRES, POSTGRES_NOOPS, database, url
from tests.bench.rig import PATIENCE

for _name, _function in jobs.JOBS.items():
    job(_name, tries=0)(_function)
for _name, _function in jobs.RUNAWAYS.items():
    job(_name, tries=1, timeout=jobs.LIMIT)(_function)

_COMMAND = [sys.executable, "-m", "queuepool"]


class Queuepool:
    name = "queuepool"
    settings = "defaults: reserve ahead by its own measure, leases renewed, JSON"
    keeps = True
    pushes = True
    fields = AS_USUAL
    strengths: dict[str, str] = {}

    @cached_property
    def _queue(self) -> Queue:
        return Queue(ConnectionSettings(url=url(), timeout=PATIENCE))

    def push(self, job: str, n: int) -> None:
        self._queue.push(job, {"n": n})

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        self._queue.bulk([(job, {"n": n}) for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        return [self._start(workers, "--url", "$BENCH_URL", "--modules", __name__)]

    def _start(self, workers: int, *flags: str) -> list[str]:
        runtime = ["--runtime-dir", os.environ["BENCH_RUNTIME"], "--quiet"]
        return [*_COMMAND, "start", *flags, "--workers", str(workers), *runtime]


class ManyAtOnce(Queuepool):
    def __init__(self, concurrency: int, *fields: str) -> None:
        self.name = f"queuepool, {concurrency} at once"
        self.settings = f"coroutines, `concurrency = {concurrency}`, asyncio's loop"
        self.fields = frozenset(fields)
        self._concurrency = str(concurrency)

    def commands(self, workers: int) -> list[list[str]]:
        return [self._many(workers, "$BENCH_URL")]

    def _many(self, workers: int, url: str) -> list[str]:
        handlers = "tests.bench.peers.coroutine_handlers"
        return self._start(workers, "--url", url, "--modules", handlers, "--concurrency", self._concurrency)


class ManyOnPostgres(ManyAtOnce):
    def __init__(self, concurrency: int) -> None:
        super().__init__(concurrency, POSTGRES)
        self.name = "queuepool on PostgreSQL"

    @cached_property
    def _queue(self) -> Queue:
        return _on_postgres()

    def commands(self, workers: int) -> list[list[str]]:
        return [self._many(workers, database())]


class PreforkOnPostgres(Queuepool):
    name = "queuepool, one at a time, on PostgreSQL"
    fields = frozenset({POSTGRES_NOOPS})

    @cached_property
    def _queue(self) -> Queue:
        return _on_postgres()

    def commands(self, workers: int) -> list[list[str]]:
        return [self._start(workers, "--url", database(), "--modules", __name__)]


def _on_postgres() -> Queue:
    subprocess.run([*_COMMAND, "migrate", "--url", database()], check=True, stdout=subprocess.DEVNULL)
    return Queue(ConnectionSettings(url=database(), timeout=PATIENCE))


PEERS = [
    Queuepool(),
    ManyAtOnce(100, MANY, PACED),
    ManyAtOnce(250, MANY),
    ManyOnPostgres(100),
    PreforkOnPostgres(),
]
