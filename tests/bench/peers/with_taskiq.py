"""taskiq on taskiq-redis: its list, which forgets what it hands out, and its stream, which is acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from taskiq import AsyncBroker
from taskiq_redis import ListQueueBroker, RedisStreamBroker

from tests.bench.peers.coroutines import Coroutines
from tests.bench.peers.jobs import EVERY, coroutine, limit
from tests.bench.peers.peer import BIN, url


def _filled(broker: AsyncBroker) -> AsyncBroker:
    for name in EVERY:
        broker.register_task(coroutine(name), task_name=name, **limit(name, "timeout"))
    return broker


# redis-py gives up after some seconds without an answer, and so do workers that wait for a job.
plain = _filled(ListQueueBroker(url(), socket_timeout=None))
stream = _filled(RedisStreamBroker(url(), consumer_id="0", socket_timeout=None))


class Taskiq(Coroutines):
    def __init__(self, name: str, broker: AsyncBroker, variable: str, *, keeps: bool) -> None:
        self.name, self.keeps = name, keeps
        self.settings = f"`{type(broker).__name__}`, coroutines, 100 at once in each process, `socket_timeout=None`"
        self._broker, self._variable = broker, variable

    async def _push(self, job: str, numbers: Sequence[int]) -> None:
        task = self._broker.find_task(job)
        assert task
        await asyncio.gather(*(task.kiq(n) for n in numbers))

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/taskiq", "worker", f"{__name__}:{self._variable}", "--workers", str(workers)]
        return [[*words, "--log-level", "WARNING", "--no-parse"]]


PEERS = [
    Taskiq("taskiq", plain, "plain", keeps=False),
    Taskiq("taskiq stream", stream, "stream", keeps=True),
]
