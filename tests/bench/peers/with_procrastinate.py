"""Procrastinate, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from procrastinate import App, PsycopgConnector

from tests.bench.peers.jobs import EVERY, coroutine
from tests.bench.peers.peer import BIN, ON_POSTGRES, batches, database

_AT_ONCE = 100

app = App(connector=PsycopgConnector(conninfo=database()))
TASKS = {name: app.task(name=name)(coroutine(name)) for name in EVERY}


class Procrastinate:
    name = "Procrastinate"
    settings = f"`--concurrency {_AT_ONCE}`, `--delete-jobs successful`, a process for each worker"
    keeps = True
    pushes = True
    fields = ON_POSTGRES
    strengths: dict[str, str] = {}

    @cached_property
    def _opened(self) -> App:
        app.open()
        app.schema_manager.apply_schema()
        return app

    def push(self, job: str, n: int) -> None:
        self.bulk(job, [n])

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        assert self._opened
        for batch in batches(numbers):
            TASKS[job].batch_defer(*({"n": n} for n in batch))

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/procrastinate", "--app", f"{__name__}.app", "worker", "--concurrency", str(_AT_ONCE)]
        return [[*words, "--delete-jobs", "successful"] for _ in range(workers)]


PEERS = [Procrastinate()]
