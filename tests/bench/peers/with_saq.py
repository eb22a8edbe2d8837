"""SAQ."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from saq import Queue

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, as_coroutine, limit
from tests.bench.peers.peer import BIN, url

_CONCURRENCY = 10


def _named(job: str) -> Any:
    async def run(ctx: object, *, n: int) -> None:
        await as_coroutine(job, n)

    return job, run


queue = Queue.from_url(url())
settings = {"queue": queue, "functions": [_named(name) for name in EVERY], "concurrency": _CONCURRENCY}


class Saq(Coroutines):
    name = "SAQ"
    settings = f"coroutines, {_CONCURRENCY} at once in each process, results dropped"
    keeps = True

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        about = {"ttl": -1, "timeout": 0, "retries": 3, **limit(job, "timeout")}
        await asyncio.gather(*(queue.enqueue(job, n=n, **about) for n in numbers))

    def commands(self, workers: int) -> list[list[str]]:
        return [[f"{BIN}/saq", f"{__name__}.settings", "--workers", str(workers), "--quiet"]]


PEERS = [Saq()]
