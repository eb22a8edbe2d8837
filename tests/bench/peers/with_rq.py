"""RQ: a fork for each job, or a worker that runs jobs itself."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis
from rq import Queue, Retry

from tests.bench.peers.jobs import EVERY, limit
from tests.bench.peers.peer import AS_USUAL, BIN, batches, url

#: a job whose worker dies has failed, unless it may be tried again
_RETRIES = {"hang": Retry(max=3)}


class Rq:
    keeps = True
    pushes = True
    fields = AS_USUAL
    strengths = {"push": "Its pipeline stores many jobs at once."}

    def __init__(self, name: str, worker: str, settings: str) -> None:
        self.name = name
        self.settings = f"`rq worker-pool -w {worker}`, {settings}, no results kept, logging off, `Retry`"
        self._worker = worker
        self._queue = Queue(connection=Redis.from_url(url()))

    def push(self, job: str, n: int) -> None:
        self._queue.enqueue(EVERY[job], n, result_ttl=0, retry=_RETRIES.get(job), **limit(job, "job_timeout"))

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for batch in batches(numbers):
            about = {"result_ttl": 0, "retry": _RETRIES.get(job)}
            self._queue.enqueue_many([Queue.prepare_data(EVERY[job], (n,), **about) for n in batch])

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/rq", "worker-pool", "--url", "$BENCH_URL", "--num-workers", str(workers)]
        return [[*words, "--worker-class", self._worker, "--logging-level", "WARNING", "--quiet"]]


PEERS = [
    Rq("RQ", "rq.worker.Worker", "a fork for each job"),
    Rq("RQ SimpleWorker", "rq.worker.SimpleWorker", "no forks"),
]
