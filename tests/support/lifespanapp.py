"""What lives on the loop of a worker's jobs; ``LIFESPAN`` says how it misbehaves."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path

from queuepool import current, job, lifespan
from tests.support.poolapp import note

HOW = os.environ.get("LIFESPAN", "well")
PLACE = Path(os.environ.get("TRAIL", "trail")).parent
_first: ContextVar[str] = ContextVar("first", default="not entered")
_clients: dict[str, object] = {}


@lifespan
async def first() -> AsyncIterator[None]:
    _clients["loop"] = asyncio.get_running_loop()
    _first.set("entered")
    note(event="first begins")
    yield
    note(event="first ends")


@lifespan
async def second() -> AsyncIterator[None]:
    note(event="second begins")
    if HOW == "raises":
        raise ConnectionError("no such\nserver")
    if HOW == "hangs":
        await asyncio.sleep(600)
    if HOW == "blocks":
        time.sleep(600)
    if HOW == "well":
        _clients["task"] = asyncio.create_task(block_once())
    yield
    note(event="second ends")
    if HOW == "raises at its end":
        raise ValueError("too late")
    if HOW == "hangs at its end":
        await asyncio.sleep(600)
    if HOW == "blocks at its end":
        time.sleep(600)


async def block_once() -> None:
    """As soon as there is a file with this name."""
    await until_there_is("block")
    (PLACE / "block").unlink()
    time.sleep(600)


async def until_there_is(name: str) -> None:
    while not (PLACE / name).exists():
        await asyncio.sleep(0.01)


@job("stays", timeout=0)
async def stays() -> None:
    note(event="stays", attempt=current().attempts)
    await until_there_is("end")
    note(event="has stayed")


@job("uses")
async def uses() -> None:
    is_same = asyncio.get_running_loop() is _clients["loop"]
    note(event="used", same=is_same, first=_first.get())
