"""Jobs with steps and cursors, whose effects are noted: how often each has happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import date
from pathlib import Path

from queuepool import current, cursor, job, step
from tests.support.poolapp import note


def effect(name: str, pause: float = 0.0) -> str:
    note(event="effect", name=name, attempt=current().attempts)
    time.sleep(pause)
    return name.upper()


def rows_after(rows: int, after: int | None) -> Iterator[int]:
    note(event="rows", after=after)
    yield from range(0 if after is None else after + 1, rows)


@job("imports", tries=1)
def imports(rows: int = 200, pause: float = 0.0, steps: int = 5) -> None:
    """Steps before and after a cursor, each with an effect."""
    note(event="start", id=current().id, attempt=current().attempts)
    for number in range(steps):
        assert f"STEP{number}" == step("step", effect, f"step{number}", pause, key=number)
    for row in cursor("rows", lambda after: rows_after(rows, after), key=lambda row: row):
        note(event="effect", name=f"row{row}")
        time.sleep(pause)
    step("last", effect, "last")
    note(event="end")


async def aeffect(name: str, pause: float = 0.0) -> str:
    note(event="effect", name=name, attempt=current().attempts)
    await asyncio.sleep(pause)
    return name.upper()


async def arows_after(rows: int, after: int | None) -> AsyncIterator[int]:
    note(event="rows", after=after)
    for row in range(0 if after is None else after + 1, rows):
        yield row


@job("aimports", tries=1)
async def aimports(rows: int = 200, pause: float = 0.0, steps: int = 5) -> None:
    note(event="start", id=current().id, attempt=current().attempts)
    found = await asyncio.gather(*(step("step", aeffect, f"step{n}", pause, key=n) for n in range(steps)))
    assert [f"STEP{n}" for n in range(steps)] == found
    async for row in cursor("rows", lambda after: arows_after(rows, after), key=lambda row: row):
        note(event="effect", name=f"row{row}")
        await asyncio.sleep(pause)
    await step("last", aeffect, "last")
    note(event="end")


def due() -> date:
    note(event="effect", name="due")
    return date(2026, 1, 31)


@job("fails", tries=3, backoff=0)
def fails(times: int = 1) -> None:
    """Raises after its first step, so many times."""
    found = step("due", due)
    note(event="found", type=type(found).__name__, value=str(found))
    if current().attempts <= times:
        raise RuntimeError("after the first step")
    step("second", effect, "second")


@job("swallows", tries=1)
def swallows() -> None:
    """Catches whatever its first step raises, and goes on."""
    note(event="start", attempt=current().attempts)
    for number in range(100):
        try:
            step("step", effect, f"step{number}", 0.05, key=number)
        except BaseException as raised:
            note(event="swallowed", error=type(raised).__name__)


@job("gated", tries=3, backoff=0)
def gated(gate: str) -> None:
    """Waits between its two steps."""
    step("first", effect, "first")
    note(event="waits")
    while not Path(gate).exists():
        time.sleep(0.01)
    try:
        step("second", effect, "second")
    except BaseException as raised:
        note(event="raised", error=type(raised).__name__)
        raise
    note(event="end")


@job("agated", tries=3, backoff=0)
async def agated(gate: str) -> None:
    await step("first", aeffect, "first")
    note(event="waits")
    while not Path(gate).exists():
        await asyncio.sleep(0.01)
    try:
        await step("second", aeffect, "second")
    except BaseException as raised:
        note(event="raised", error=type(raised).__name__)
        raise
    note(event="end")
