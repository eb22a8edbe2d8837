"""Async jobs that leave something on the loop that the next one runs on, and an innocent one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from queuepool import current
from tests.chaos.ledger import Ledger

#: seconds that a task which is left behind takes
_AFTERWARDS = 0.05
INNOCENT = "nap_async"


async def nap_async(attempt: int, ledger: Ledger, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def leave_a_task(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        asyncio.get_running_loop().create_task(_haunt(ledger, current().id))


async def stop_the_loop(attempt: int, ledger: Ledger) -> None:
    if attempt == 1:
        asyncio.get_running_loop().stop()


async def _haunt(ledger: Ledger, job_id: str) -> None:
    await asyncio.sleep(_AFTERWARDS)
    ledger.attempt("ghost", job_id, 1)


ASYNC: dict[str, Callable[..., Awaitable[None]]] = {
    INNOCENT: nap_async,
    "leave_a_task": leave_a_task,
    "stop_the_loop": stop_the_loop,
}
