"""The jobs of flows that tests run in real pools; each notes on the trail that it has begun and ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

from queuepool import current, job
from tests.support.gates import until_told


def note(what: str, **facts: object) -> None:
    with Path(os.environ["TRAIL"]).open("a") as trail:
        trail.write(json.dumps({"what": what, "job": current().id, **facts}) + "\n")


@job("flow.step", tries=20, backoff=0)
def step(name: str, seconds: float = 0.0, gate: str = "") -> str:
    note("begins", name=name)
    time.sleep(seconds)
    if gate:
        until_told(gate)
    note("ends", name=name)
    return name.upper()


@job("flow.astep", tries=20, backoff=0)
async def astep(name: str, seconds: float = 0.0) -> str:
    note("begins", name=name)
    await asyncio.sleep(seconds)
    note("ends", name=name)
    return name.upper()


@job("flow.merge", tries=20, backoff=0)
def merge(names: list[str]) -> int:
    note("merges", names=names)
    return len(names)


@job("flow.fails", tries=1)
def fails(until: str = "") -> None:
    note("fails")
    if not (until and Path(until).exists()):
        raise ValueError("as asked")


@job("flow.split", tries=20, backoff=0)
def split(count: int, gate: str = "") -> None:
    flow = current().flow
    assert flow
    for number in range(count):
        flow.add(step.call(f"part {number}"))
    note("splits")
    if gate and current().attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@job("flow.large")
def large() -> str:
    return "x" * 70_000


@job("flow.takes")
def takes(text: str) -> None:
    note("takes")


@job("flow.idle", tries=20, backoff=0)
def idle() -> None: ...


@job("flow.late", tries=20, backoff=0, expires=0.1)
def late() -> None:
    note("late")


@job("flow.dies", tries=20, backoff=0)
def dies() -> None:
    note("dies")
    if current().attempts == 1:
        os.kill(os.getpid(), signal.SIGKILL)
