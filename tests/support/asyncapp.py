"""Async jobs that leave something behind on their worker's event loop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from queuepool import current, job
from tests.support.gates import until_told
from tests.support.poolapp import note, refuse

_kept: list[Any] = []


@job("async")
async def run(mode: str = "ok", **options: Any) -> None:
    note(event="start", mode=mode, loop=id(asyncio.get_running_loop()), attempt=current().attempts)
    await MODES[mode](**options)
    note(event="end", mode=mode)


@run.after_succeeded
async def succeeded(mode: str, **options: Any) -> None:
    if mode == "leave_in_the_hook":
        keep(go_on())


@job("blocking")
def blocking(gate: str) -> None:
    note(event="start", mode="blocking")


@blocking.after_succeeded
def blocks_afterwards(gate: str) -> None:
    note(event="hook")
    until_told(gate)
    note(event="end of hook")


def keep(work: Any) -> None:
    _kept.append(asyncio.get_running_loop().create_task(work))


async def go_on() -> None:
    """Runs until it is cancelled."""
    try:
        while True:
            await asyncio.sleep(0.01)
            note(event="goes on")
    finally:
        note(event="cancelled")


async def block() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        note(event="blocks")
        time.sleep(60)


async def quit_when_cancelled() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        os.sys.exit(1)  # type: ignore[attr-defined]


async def leave(tasks: int = 1, work: str = "go_on") -> None:
    for _ in range(tasks):
        keep(WORKS[work]())
    await asyncio.sleep(0.02)


async def leave_and_raise() -> None:
    await leave()
    raise ValueError("as asked")


async def stop(later: float = 0.0) -> None:
    loop = asyncio.get_running_loop()
    if later:
        loop.call_later(later, loop.stop)
    else:
        loop.stop()


async def stop_and_wait() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.05)


async def numbers() -> AsyncIterator[int]:
    try:
        for number in range(10):
            yield number
    finally:
        await asyncio.sleep(0)
        note(event="closed")


async def take_one() -> None:
    async for _ in numbers():
        break


async def use_a_thread() -> None:
    await asyncio.to_thread(time.sleep, 0.001)


async def nothing() -> None:
    return


WORKS: dict[str, Callable[[], Awaitable[None]]] = {
    "go_on": go_on, "refuse": refuse, "block": block, "quit": quit_when_cancelled,
}  # fmt: skip
MODES: dict[str, Callable[..., Awaitable[None]]] = {
    "ok": nothing,
    "sleep": lambda seconds: asyncio.sleep(seconds),
    "leave": leave,
    "leave_and_raise": leave_and_raise,
    "leave_in_the_hook": nothing,
    "stop": stop,
    "stop_and_wait": stop_and_wait,
    "take_one": take_one,
    "thread": use_a_thread,
}
