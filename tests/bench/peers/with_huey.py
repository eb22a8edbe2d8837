"""Huey, with processes."""

from __future__ import annotations

from collections.abc import Sequence

from huey import RedisHuey

from tests.bench.peers.jobs import EVERY, limit
from tests.bench.peers.peer import AS_USUAL, BIN, url

huey = RedisHuey("bench", url=url(), results=False)
TASKS = {name: huey.task(name=name, **limit(name, "timeout"))(function) for name, function in EVERY.items()}


class Huey:
    name = "Huey"
    settings = "`-k process`, blocking, no results, no periodic tasks"
    keeps = False
    pushes = True
    fields = AS_USUAL
    strengths = {
        **dict.fromkeys(
            ("drain", "sleep", "latency"),
            "One command takes a job off a list and forgets it: no lease, no count of attempts, nothing to settle.",
        ),
        "push": "Its envelope is a small pickle, pushed by one plain command.",
        "memory": "It has no process that renews leases.",
    }

    def push(self, job: str, n: int) -> None:
        TASKS[job](n)

    def bulk(self, job: str, numbers: Sequence[int]) -> None:
        for n in numbers:
            self.push(job, n)

    def commands(self, workers: int) -> list[list[str]]:
        flags = ["--worker-type", "process", "--workers", str(workers), "--no-periodic", "--quiet"]
        return [[f"{BIN}/huey_consumer", f"{__name__}.huey", *flags]]


PEERS = [Huey()]
