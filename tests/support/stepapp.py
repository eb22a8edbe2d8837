"""Jobs with steps and cursors, whose effects are noted: how often each has happened."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from queuepool import Job, current, cursor, job, step
from tests.support.gates import until_told
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


@job("expires", tries=1, expires=3)
def expires(gate: str) -> None:
    """Goes on until the file is there."""
    note(event="start", id=current().id, attempt=current().attempts)
    for row in cursor("rows", lambda after: rows_after(100_000, after), key=lambda row: row):
        note(event="effect", name=f"row{row}")
        if Path(gate).exists():
            return
        time.sleep(0.05)


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
    until_told(gate)
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


def opened(gate: str) -> Iterator[None]:
    """Goes on until the gate is open; notes once that the worker is to stop."""
    noted = False
    while not Path(gate).exists():
        if current().stopping and not noted:
            noted = True
            note(event="stopping", gate=gate)
        yield


def behind(name: str, gate: str) -> None:
    """An effect behind a gate."""
    note(event="begin", name=name)
    for _ in opened(gate):
        time.sleep(0.01)
    note(event="effect", name=name)


async def abehind(name: str, gate: str) -> None:
    note(event="begin", name=name)
    for _ in opened(gate):
        await asyncio.sleep(0.01)
    note(event="effect", name=name)


@job("together", tries=1)
def together(gates: list[str]) -> None:
    """A step in each of several threads."""
    note(event="start", id=current().id, attempt=current().attempts)
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda gate: step(gate, behind, gate, gate), gates))
    note(event="end")


@job("atogether", tries=1)
async def atogether(gates: list[str]) -> None:
    """A step in each of several tasks, and one more behind the first."""
    note(event="start", id=current().id, attempt=current().attempts)

    async def two() -> None:
        await step(gates[0], abehind, gates[0], gates[0])
        await step("more", abehind, "more", gates[0])

    await asyncio.gather(two(), *(step(gate, abehind, gate, gate) for gate in gates[1:]))
    note(event="end")


@job("nested", tries=1)
def nested(gate: str, rows: bool = False) -> None:
    """A step, or a cursor, within a step."""

    def outer() -> None:
        behind("outer", gate)
        if rows:
            for row in cursor("rows", lambda done: [1, 2][done:]):
                note(event="effect", name=f"row{row}")
        else:
            step("inner", effect, "inner")
        note(event="effect", name="rest")

    note(event="start", attempt=current().attempts)
    step("outer", outer)
    note(event="end")


class Hooked(Job):
    """A step in the hook of a job that has succeeded."""

    def __init__(self, gate: str) -> None:
        self.gate = gate

    def handle(self) -> None:
        step("first", effect, "first")

    def after_succeeded(self) -> None:
        step("hooked", behind, "hooked", self.gate)
        note(event="effect", name="rest")


@job("leaves-a-thread")
def leaves_a_thread(gate: str, left: str) -> None:
    """The thread goes on through its rows when the job has ended."""

    def work() -> None:
        try:
            for row in cursor("rows", lambda done: range(done or 0, 100)):
                note(event="left", row=row)
                while row == 1 and not Path(left).exists():
                    time.sleep(0.01)
        finally:
            note(event="left behind")

    threading.Thread(target=work, daemon=True).start()
    for _ in opened(gate):
        time.sleep(0.01)


@job("waits-in-its-rows", tries=5, backoff=0)
def waits_in_its_rows(gate: str) -> None:
    note(event="start", attempt=current().attempts)
    for row in cursor("rows", lambda done: range(done or 0, 3)):
        behind(f"row{row}", gate)
    note(event="end")


@job("aside", tries=1)
async def aside(rows: int = 60, pause: float = 0.002) -> None:
    """Two cursors side by side."""
    note(event="start", id=current().id, attempt=current().attempts)

    async def through(name: str) -> None:
        async for row in cursor(name, lambda done: range(done or 0, rows)):
            note(event="effect", name=f"{name}{row}")
            await asyncio.sleep(pause)

    await asyncio.gather(through("left"), through("right"))
    note(event="end")


@job("catches", tries=3)
def catches() -> None:
    """Catches what its step raises."""
    try:
        step("first", effect, "first")
    except Exception as error:
        note(event="caught", error=str(error))
    note(event="end")


@job("blocks", tries=1)
async def blocks() -> None:
    """Would block the loop."""
    try:
        step("first", effect, "first")
    except TypeError as error:
        note(event="caught", error=str(error))
    try:
        for row in cursor("rows", lambda done: [1, 2][done:]):
            note(event="effect", name=f"row{row}")
    except TypeError as error:
        note(event="caught", error=str(error))
    note(event="end")
