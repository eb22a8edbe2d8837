"""Dramatiq, with one thread in each process, so that no two jobs share one."""

from __future__ import annotations

from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from tests.bench.peers.jobs import EVERY, limit
from tests.bench.peers.peer import AS_USUAL, BIN, url

dramatiq.set_broker(RedisBroker(url=url()))
ACTORS = {
    name: dramatiq.actor(function, actor_name=name, **limit(name, "time_limit", a_second=1000))
    for name, function in EVERY.items()
}


class Dramatiq:
    keeps = True
    pushes = True
    fields = AS_USUAL
    strengths = {
        "drain": "A thread of its own takes many messages at once and acknowledges them, beside the one for jobs.",
    }

    def __init__(self, name: str, prefetch: int) -> None:
        self.name = name
        self.settings = f"`--threads 1`, default middleware, `dramatiq_queue_prefetch={prefetch}`"
        self._prefetch = prefetch

    def push(self, job: str, n: int) -> None:
        ACTORS[job].send(n)

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for n in numbers:
            self.push(job, n)

    def commands(self, workers: int) -> list[list[str]]:
        words = [f"{BIN}/dramatiq", __name__, "--processes", str(workers), "--threads", "1"]
        return [["env", f"dramatiq_queue_prefetch={self._prefetch}", *words]]


#: by default it takes two for each thread, and then waits until it has room again: ten times as slow
PEERS = [Dramatiq("Dramatiq", 2), Dramatiq("Dramatiq prefetch", 64)]
