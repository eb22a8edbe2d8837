"""SAQ."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from saq import Queue

from tests.bench.peers.jobs import EVERY, as_coroutine, limit
from tests.bench.peers.peer import BIN, CONCURRENT, batches, url

_CONCURRENCY = 10
#: pushes under way at once
_TOGETHER = 50


def _named(job: str) -> Any:
    async def run(ctx: object, *, n: int) -> None:
        await as_coroutine(job, n)

    return job, run


queue = Queue.from_url(url())
settings = {"queue": queue, "functions": [_named(name) for name in EVERY], "concurrency": _CONCURRENCY}


class Saq:
    name = "SAQ"
    settings = f"coroutines, {_CONCURRENCY} at once in each process, results dropped"
    keeps = True
    pushes = True
    strengths = dict.fromkeys(("drain", "sleep"), CONCURRENT)

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def push(self, job: str, n: int) -> None:
        self._runner.run(self._push(job, [n]))

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers, _TOGETHER):
            self._runner.run(self._push(job, batch))

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        about = {"ttl": -1, "timeout": 0, "retries": 3, **limit(job, "timeout")}
        await asyncio.gather(*(queue.enqueue(job, n=n, **about) for n in numbers))

    def commands(self, workers: int) -> list[list[str]]:
        return [[f"{BIN}/saq", f"{__name__}.settings", "--workers", str(workers), "--quiet"]]


PEERS = [Saq()]
