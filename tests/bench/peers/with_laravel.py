"""Laravel's real ``queue:work``, where PHP is installed. Its jobs are pushed by us: the bytes are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from tests.bench.peers.jobs import limit
from tests.bench.peers.peer import AS_USUAL, url
from tests.support.laravel_peer import SCRIPT, is_installed

_JOBS = Path(__file__).with_suffix(".php")


class Laravel:
    name = "Laravel"
    settings = "`queue:work`, phpredis, `--sleep=0.05`; pushed by queuepool"
    keeps = True
    pushes = False
    fields = AS_USUAL
    strengths = {
        "drain": "PHP starts a job that does nothing in less time than Python.",
        "memory": "A worker is one PHP process, with no master and no steward beside it.",
    }

    def __init__(self) -> None:
        self._queue = Queue(ConnectionSettings(url=url()))

    def push(self, job: str, n: int) -> None:
        self._queue.push(rf"Bench\Job@{job}", {"n": n}, options=limit(job, "timeout"))

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        self._queue.bulk([(rf"Bench\Job@{job}", {"n": n}) for n in numbers])

    def commands(self, workers: int) -> list[list[str]]:
        return [["php", str(SCRIPT), "work", f"--boot={_JOBS}", "--tries=3"] for _ in range(workers)]


PEERS = [Laravel()] if is_installed(("redis", "pcntl")) else []
