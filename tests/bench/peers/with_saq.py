"""SAQ, with the concurrency that it has by default, and with a greater one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from saq import Queue

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, as_coroutine, limit
from tests.bench.peers.peer import AS_USUAL, BIN, MANY, url

_DEFAULT, _MANY = 10, 100


def _named(job: str) -> Any:
    async def run(ctx: object, *, n: int) -> None:
        await as_coroutine(job, n)

    return job, run


queue = Queue.from_url(url())
settings = {"queue": queue, "functions": [_named(name) for name in EVERY], "concurrency": _DEFAULT}
settings_of_many = settings | {"concurrency": _MANY}


class Saq(Coroutines):
    keeps = True

    def __init__(self, name: str, variable: str, concurrency: int, fields: frozenset[str]) -> None:
        self.name, self.fields, self._variable = name, fields, variable
        self.settings = f"coroutines, {concurrency} at once in each process, results dropped"

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        about = {"ttl": -1, "timeout": 0, "retries": 3, **limit(job, "timeout")}
        await asyncio.gather(*(queue.enqueue(job, n=n, **about) for n in numbers))

    def commands(self, workers: int) -> list[list[str]]:
        return [[f"{BIN}/saq", f"{__name__}.{self._variable}", "--workers", str(workers), "--quiet"]]


PEERS = [
    Saq("SAQ", "settings", _DEFAULT, AS_USUAL),
    Saq(f"SAQ, {_MANY} at once", "settings_of_many", _MANY, frozenset({MANY})),
]
