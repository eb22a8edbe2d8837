"""streaQ."""

from __future__ import annotations

from collections.abc import Sequence

import coredis
from streaq import Worker

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, coroutine
from tests.bench.peers.peer import BIN, MANY, batches, url

_AT_ONCE = 100

coredis.Config.optimized = True
worker = Worker(redis_url=url(), concurrency=_AT_ONCE, anyio_kwargs={"use_uvloop": True})
TASKS = {name: worker.task(name=name, silent=True, ttl=0)(coroutine(name)) for name in EVERY}


class Streaq(Coroutines):
    name = "streaQ"
    settings = f"`concurrency={_AT_ONCE}`, uvloop, coredis optimized, no results kept, nothing logged of a task"
    keeps = True
    fields = frozenset({MANY})

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers):
            self._runner.run(self._push(job, batch))

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        async with worker:
            await worker.enqueue_many([TASKS[job].enqueue(n) for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        return [[f"{BIN}/streaq", "run", f"{__name__}:worker", "--workers", str(workers)]]


PEERS = [Streaq()]
