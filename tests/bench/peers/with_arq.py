"""arq. It needs another redis-py than the others, and so an environment of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import func

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, as_coroutine
from tests.bench.peers.peer import BIN, MANY, url

_AT_ONCE, _POLL = 100, 0.01


def _named(job: str) -> Any:
    async def run(ctx: object, n: int) -> None:
        await as_coroutine(job, n)

    return func(run, name=job)


class WorkerSettings:
    functions = [_named(name) for name in EVERY]
    redis_settings = RedisSettings.from_dsn(url())
    max_jobs = _AT_ONCE
    poll_delay = _POLL
    keep_result = 0


class Arq(Coroutines):
    name = "arq"
    settings = f"`max_jobs={_AT_ONCE}`, `poll_delay={_POLL}`, no results kept, a process for each worker"
    keeps = True
    fields = frozenset({MANY})
    _pool: ArqRedis | None = None

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        self._pool = pool = self._pool or await create_pool(WorkerSettings.redis_settings)
        await asyncio.gather(*(pool.enqueue_job(job, n) for n in numbers))

    def commands(self, workers: int) -> list[list[str]]:
        quiet = ["--custom-log-dict", f"{__name__}.QUIET"]
        return [[f"{BIN}/arq", f"{__name__}.WorkerSettings", *quiet] for _ in range(workers)]


#: it logs two lines of each job otherwise
QUIET = {"version": 1, "disable_existing_loggers": False}
PEERS = [Arq()]
