"""Jobs that run side by side on one worker's loop: those that harm no other one, and those that end the worker.

A job misbehaves only at its first attempt, but for one that ends each of its workers. Whoever ends the worker is known
from the board, so its neighbours are innocent: their attempt does not count. Where that proves nothing, as after the
kill of a worker that takes too much memory, all that ran there are suspects.

Workers that run one job at a time have these jobs too.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tests.chaos.async_modes import leave_a_task, nap_async, stop_the_loop
from tests.chaos.ledger import Ledger
from tests.chaos.modes import nap, over

Mode = Callable[..., Awaitable[None]]

#: MB at which a master kills a worker
MEMORY_HARD = 300


async def many_awaits(attempt: int, ledger: Ledger) -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def leave_tasks(attempt: int, ledger: Ledger) -> None:
    for _ in range(10):
        await leave_a_task(attempt, ledger)


async def lane_rest(attempt: int, ledger: Ledger) -> None:
    """Long enough to meet several deaths of its workers."""
    await asyncio.sleep(0.5)


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


async def hog_memory(attempt: int, ledger: Ledger) -> None:
    """Its worker is killed for it, which says nothing of who it was."""
    if attempt == 1:
        hoard = bytearray(b"x") * (MEMORY_HARD << 20)
        await asyncio.sleep(60)
        hoard.clear()


async def kill_in_await(attempt: int, ledger: Ledger) -> None:
    """At each attempt: it must fail in the end, though nothing ever proves that it was the cause."""
    await asyncio.sleep(0.02)
    over(attempt, ledger)
    os.kill(os.getpid(), signal.SIGKILL)


def hang_in_thread(attempt: int, ledger: Ledger) -> None:
    """A plain function: nothing ends its thread but the end of its worker."""
    if attempt == 1:
        time.sleep(60)


#: who does nothing that could end a worker; but a thread may, so plain functions are not among them
INNOCENT: dict[str, Mode] = {
    "lane_nap": nap_async, "lane_rest": lane_rest, "many_awaits": many_awaits, "leave_tasks": leave_tasks,
    "block_briefly": block_briefly, "lane_stops_the_loop": stop_the_loop,
}  # fmt: skip
#: whom the loop ends at their deadlines
_CANCELLED: dict[str, Mode] = {"overstay": overstay, "leave_a_thread": leave_a_thread}
#: who ends the worker, and leaves no trace of having done it
_UNPROVEN: dict[str, Mode] = {"hog_memory": hog_memory, "kill_in_await": kill_in_await}
_DEADLY: dict[str, Mode] = {
    "block_loop": block_loop, "swallow_cancel": swallow_cancel, "segv_in_await": segv_in_await,
    "exit_in_await": exit_in_await, **_UNPROVEN,
}  # fmt: skip
#: as many of each as stand here
USUAL = (*["lane_nap"] * 5, "many_awaits", *INNOCENT, *_CANCELLED, "nap_in_thread", "nap_in_thread")
IN_LANES = {**INNOCENT, **_CANCELLED, **_DEADLY}
#: plain functions
IN_THREADS: dict[str, Callable[..., None]] = {"nap_in_thread": nap, "hang_in_thread": hang_in_thread}
#: whose first attempts end the worker
DEADLY = {*_DEADLY, "hang_in_thread"}
UNPROVEN = set(_UNPROVEN)
#: who is to blame, as the board says
PROVEN = DEADLY - UNPROVEN
#: that are to fail
FATAL = {"kill_in_await"}
#: while one of these runs, no other job can
BLOCKING = {"block_loop"}
#: whose first attempts only their deadlines end
LATE = {"overstay", "leave_a_thread", "block_loop", "swallow_cancel", "hang_in_thread"}
#: whose workers are to be killed in so many seconds, long before the job's own deadline
ENDED = {"hog_memory": 2.0}
