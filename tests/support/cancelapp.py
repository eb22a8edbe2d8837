"""Jobs that somebody cancels: each notes how it ends."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from queuepool import current, job
from tests.support.poolapp import note


@job("stays", tries=5, backoff=0)
def stays(how: str = "sleep", **_: Any) -> None:
    """Does not end by itself."""
    note(event="start", id=current().id, attempt=current().attempts)
    if how == "gil":
        sum(range(10**13))  # C code that keeps the interpreter's lock, and looks at no signal
    deeply()


def deeply() -> None:
    time.sleep(60)


@stays.after_failed
def stays_failed(error: BaseException, **_: Any) -> None:
    note(event="after_failed", error=type(error).__name__)


@job("awaits", tries=5, backoff=0)
async def awaits(swallows: bool = False, lingers: float = 0.0) -> None:
    note(event="start", id=current().id, attempt=current().attempts)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note(event="cancelled", told=current().cancelled)
        if not swallows:
            raise
    finally:
        await asyncio.sleep(lingers)
        note(event="finally")


@awaits.after_failed
def awaits_failed(error: BaseException, **_: Any) -> None:
    note(event="after_failed", error=type(error).__name__)


@job("asks", tries=5, backoff=0)
def asks() -> None:
    note(event="start", id=current().id, attempt=current().attempts)
    while not current().stopping:
        time.sleep(0.005)
    note(event="stopping", told=current().cancelled)
    current().release(60)


@job("wraps", tries=5, backoff=0)
def wraps() -> object:
    """A plain function whose result is awaited."""
    return awaits()


@job("quick", tries=1)
def quick(n: int, seconds: float = 0.0) -> None:
    note(event="ran", n=n, attempt=current().attempts)
    time.sleep(seconds)
    note(event="done", n=n)


@job("neighbour", tries=1)
async def neighbour(n: int, seconds: float = 0.0) -> None:
    """Waits until the file ``gate`` is there."""
    note(event="start", n=n, id=current().id, attempt=current().attempts)
    await asyncio.sleep(seconds)
    while not os.path.exists(f"{os.environ['TRAIL']}.gate"):
        await asyncio.sleep(0.01)
    note(event="done", n=n)


@job("blocks", tries=5)
async def blocks() -> None:
    note(event="start", id=current().id, attempt=current().attempts)
    await asyncio.sleep(0.1)
    note(event="blocks")
    time.sleep(60)
