"""RQ's limits: what waits is in a set, and whoever ends a job moves the next one to its queue."""

from __future__ import annotations

from collections.abc import Iterable

from redis import Redis
from rq import Queue, get_current_job
from rq.rate_limit import RateLimit

from tests.bench.peers.holding import hold
from tests.bench.peers.peer import BIN, url


def run(n: int, seconds: float) -> None:
    job = get_current_job()
    assert job
    hold(n, seconds, 1 + (job.number_of_retries or 0))


class RqLimits:
    def __init__(self, name: str, worker: str) -> None:
        self.name = name
        self.settings = f"`RateLimit`, `rq worker-pool -w {worker}`, no results kept, logging off"
        self._worker = worker

    def push(self, places: int, numbers: Iterable[int], seconds: float) -> None:
        queue, limit = Queue(connection=Redis.from_url(url())), RateLimit(f"places-{places}", concurrency=places)
        for n in numbers:
            queue.enqueue(run, n, seconds, result_ttl=0, rate_limit=limit)

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/rq", "worker-pool", "--url", "$BENCH_URL", "--num-workers", str(workers)]
        return [[*words, "--worker-class", self._worker, "--logging-level", "WARNING", "--quiet"]]


QUEUES = [RqLimits("RQ", "rq.worker.Worker"), RqLimits("RQ SimpleWorker", "rq.worker.SimpleWorker")]
