"""Jobs that run side by side on one worker's loop: those that harm no other one, and those that end the worker.

A job misbehaves only at its first attempt. Whoever ends the worker is known from the board, so its neighbours are
innocent: their attempt does not count.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.chaos.async_modes import leave_a_task, nap_async, stop_the_loop
from tests.chaos.ledger import Ledger
from tests.chaos.modes import nap, over

Mode = Callable[..., Awaitable[None]]


async def many_awaits(attempt: int, ledger: Ledger) -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def leave_tasks(attempt: int, ledger: Ledger) -> None:
    for _ in range(10):
        await leave_a_task(attempt, ledger)


async def block_briefly(attempt: int, ledger: Ledger) -> None:
    time.sleep(0.05)


async def overstay(attempt: int, ledger: Ledger) -> None:
    """Its deadline alone ends it."""
    if attempt == 1:
        await asyncio.sleep(60)


async def leave_a_thread(attempt: int, ledger: Ledger) -> None:
    """Cancelled at its deadline, it leaves a thread at work."""
    if attempt == 1:
        await asyncio.to_thread(time.sleep, 2.0)


async def block_loop(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        await asyncio.sleep(0.01)
        time.sleep(60)


async def swallow_cancel(attempt: int, ledger: Ledger) -> None:
    while attempt == 1:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


async def segv_in_await(attempt: int, ledger: Ledger) -> None:
    await asyncio.sleep(0.02)
    if attempt == 1:
        over(attempt, ledger)
        ctypes.string_at(0)


async def exit_in_await(attempt: int, ledger: Ledger) -> None:
    await asyncio.sleep(0.02)
    if attempt == 1:
        over(attempt, ledger)
        os._exit(0)


def hang_in_thread(attempt: int, ledger: Ledger) -> None:
    """A plain function: nothing ends its thread but the end of its worker."""
    if attempt == 1:
        time.sleep(60)


#: who does nothing that could end a worker; but a thread may, so plain functions are not among them
INNOCENT: dict[str, Mode] = {
    "lane_nap": nap_async, "many_awaits": many_awaits, "leave_tasks": leave_tasks, "block_briefly": block_briefly,
    "lane_stops_the_loop": stop_the_loop,
}  # fmt: skip
#: whom the loop ends at their deadlines
_CANCELLED: dict[str, Mode] = {"overstay": overstay, "leave_a_thread": leave_a_thread}
_DEADLY: dict[str, Mode] = {
    "block_loop": block_loop, "swallow_cancel": swallow_cancel, "segv_in_await": segv_in_await,
    "exit_in_await": exit_in_await,
}  # fmt: skip
#: as many of each as stand here
USUAL = (*["lane_nap"] * 5, "many_awaits", *INNOCENT, *_CANCELLED, "nap_in_thread", "nap_in_thread")
IN_LANES = {**INNOCENT, **_CANCELLED, **_DEADLY}
#: plain functions
IN_THREADS: dict[str, Callable[..., None]] = {"nap_in_thread": nap, "hang_in_thread": hang_in_thread}
#: whose first attempts end the worker, and are to blame
DEADLY = {*_DEADLY, "hang_in_thread"}
#: while one of these runs, no other job can
BLOCKING = {"block_loop"}
#: whose first attempts only their deadlines end
LATE = {"overstay", "leave_a_thread", "block_loop", "swallow_cancel", "hang_in_thread"}
