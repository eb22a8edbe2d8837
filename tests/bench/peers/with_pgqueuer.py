"""PgQueuer, on PostgreSQL. As a program it is one of its workers: `pgq run` of 1.6 fails under today's typer."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import asyncpg
import uvloop
from pgqueuer import PgQueuer as Application
from pgqueuer import Queries
from pgqueuer.models import Job

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, as_coroutine
from tests.bench.peers.peer import ON_POSTGRES, batches, database

_AT_ONCE = 100


async def work() -> None:
    application = Application.from_asyncpg_connection(await asyncpg.connect(database()))
    for name in EVERY:
        application.entrypoint(name)(_run)
    await application.run(batch_size=_AT_ONCE)


async def _run(job: Job) -> None:
    assert job.payload
    await as_coroutine(job.entrypoint, json.loads(job.payload)["n"])


class PgQueuer(Coroutines):
    name = "PgQueuer"
    settings = f"`batch_size={_AT_ONCE}`, asyncpg, uvloop, a process for each worker"
    keeps = True
    fields = ON_POSTGRES
    _queries: Queries | None = None

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers):
            self._runner.run(self._push(job, batch))

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        self._queries = queries = self._queries or await _installed()
        payloads = [json.dumps({"n": n}).encode() for n in numbers]
        await queries.enqueue([job] * len(payloads), payloads, [0] * len(payloads))

    def commands(self, workers: int) -> list[list[str]]:
        return [[sys.executable, "-m", __name__] for _ in range(workers)]


async def _installed() -> Queries:
    queries = Queries.from_asyncpg_connection(await asyncpg.connect(database()))
    await queries.install()
    return queries


PEERS = [PgQueuer()]

if __name__ == "__main__":
    uvloop.run(work())
