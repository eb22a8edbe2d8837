"""Async jobs with a soft timeout: it cancels their first attempts, and each of them takes that in its own way."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from queuepool import current
from tests.chaos.ledger import Ledger
from tests.chaos.soft_modes import ABOUT, SOFT_TIMEOUT, note

#: sleeps at a first attempt for these seconds, and writes it down if it is cancelled
Wait = Callable[[float], Awaitable[None]]


async def act(mode: str, attempt: int, ledger: Ledger, began: float) -> None:
    """As ``soft_modes.act``. Raises ``CancelledError`` for one that did not finish."""

    async def wait(seconds: float) -> None:
        try:
            if attempt == 1:
                await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            note(ledger, attempt, began)
            raise

    try:
        await ASYNC_SOFT[mode](wait)
    except asyncio.CancelledError:
        ledger.attempt("die", current().id, attempt)
        raise
    ledger.attempt("finish", current().id, attempt)


async def _sleep_past(wait: Wait) -> None:
    await wait(60.0)


async def _clean_up(wait: Wait) -> None:
    try:
        await wait(60.0)
    except asyncio.CancelledError:
        await asyncio.sleep(SOFT_TIMEOUT * 1.5)  # a second one would be wrong
        raise


async def _go_on(wait: Wait) -> None:
    try:
        await wait(60.0)
    except asyncio.CancelledError:
        await asyncio.sleep(SOFT_TIMEOUT * 1.5)  # likewise


async def _block_the_loop(wait: Wait) -> None:
    time.sleep(SOFT_TIMEOUT * 1.5)  # it comes as soon as this lets the loop go on
    await wait(60.0)


async def _end_with_a_timeout_of_its_own(wait: Wait) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(SOFT_TIMEOUT + random.uniform(-ABOUT, ABOUT)):
            await wait(60.0)


async def _end_with(wait: Wait) -> None:
    await wait(SOFT_TIMEOUT + random.uniform(-ABOUT, ABOUT))


async def _end_long_before(wait: Wait) -> None:
    await wait(0.0)


#: those whose first attempts only the soft timeout ends
ASYNC_PAST: dict[str, Callable[[Wait], Awaitable[None]]] = {
    "async_soft_past": _sleep_past,
    "async_soft_cleaned_up": _clean_up,
    "async_soft_caught": _go_on,
    "async_soft_blocked": _block_the_loop,
}
ASYNC_SOFT = {
    **ASYNC_PAST,
    "async_soft_own": _end_with_a_timeout_of_its_own,
    "async_soft_tie": _end_with,
    "async_soft_unreached": _end_long_before,
}
