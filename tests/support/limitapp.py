"""The jobs with limits that tests run in real pools; each notes on the trail that it has begun and ended."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from queuepool import Concurrency, Rate, current, job, step
from tests.support.gates import until_told


def note(what: str, **facts: object) -> None:
    with Path(os.environ["TRAIL"]).open("a") as trail:
        trail.write(json.dumps({"what": what, "job": current().id, "at": time.time(), **facts}) + "\n")


@job("limit.plain", tries=20, backoff=0)
def plain(tenant: str, seconds: float = 0.0) -> None:
    note("begins", tenant=tenant)
    time.sleep(seconds)
    note("ends", tenant=tenant)


@job("limit.imports", tries=20, backoff=0, limits=[Concurrency("import", 2, by="{tenant}")])
def imports(tenant: str, seconds: float = 0.0) -> None:
    note("begins", tenant=tenant)
    time.sleep(seconds)
    note("ends", tenant=tenant)


@job("limit.aimports", tries=20, backoff=0, limits=[Concurrency("import", 2, by="{tenant}")])
async def aimports(tenant: str, seconds: float = 0.0) -> None:
    note("begins", tenant=tenant)
    await asyncio.sleep(seconds)
    note("ends", tenant=tenant)


@job("limit.shares", tries=20, backoff=0, limits=[Concurrency("gpu", 1, fair="{tenant}")])
def shares(tenant: str, seconds: float = 0.0) -> None:
    note("begins", tenant=tenant)
    time.sleep(seconds)
    note("ends", tenant=tenant)


@job("limit.waits", tries=20, backoff=0, limits=[Concurrency("gpu", 1, fair="{tenant}")])
def waits(tenant: str, gate: str) -> None:
    note("begins", tenant=tenant, pid=os.getpid())
    until_told(gate)


@job("limit.calls", tries=20, backoff=0, limits=[Rate("stripe", 5, per=1)])
def calls(tenant: str = "") -> None:
    note("begins", tenant=tenant)


@job("limit.dies", tries=20, backoff=0, limits=[Concurrency("import", 2, by="{tenant}")])
def dies(tenant: str, until: str) -> None:
    note("begins", tenant=tenant)
    if not Path(until).exists():
        Path(until).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    note("ends", tenant=tenant)


@job("limit.steps", tries=20, backoff=0, limits=[Concurrency("stepped", 1)])
def steps(tenant: str) -> None:
    note("begins", tenant=tenant)
    for number in range(10):
        step(f"part {number}", time.sleep, 0.1)
    note("ends", tenant=tenant, attempts=current().attempts)


@job("limit.locked", tries=0, backoff=0, limits=[Concurrency("locked", 2, by="{tenant}")])
def locked(tenant: str, number: int) -> None:
    """Holds one of two locks of the kernel, which end with its process: nothing else can say so well who runs."""
    with ExitStack() as stack:
        files = [stack.enter_context(Path(f"{os.environ['TRAIL']}.{tenant}.{one}").open("a")) for one in range(2)]
        if not any(_is_mine(file.fileno()) for file in files):
            note("too many", tenant=tenant)
        time.sleep(0.02)
        note("ends", tenant=tenant, number=number)


def _is_mine(lock: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
