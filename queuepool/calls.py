"""Calling the user's code: plain or async, and going on in the worker alone, not in a copy that the code has forked."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
from collections.abc import Callable

from queuepool.fork import BROKEN


class Calls:
    """All async calls of a worker share one loop."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop: asyncio.Runner | None = None

    def call(self, function: Callable[[], object]) -> None:
        """Raises whatever it raises."""
        result = function()
        if result is not None and inspect.isawaitable(result):
            self._loop = self._loop or asyncio.Runner()
            self._loop.run(_awaited(result), context=contextvars.copy_context())

    def leave_if_forked(self) -> None:
        """A job that forked and returned in both: only the worker itself may go on to settle it."""
        if os.getpid() != self._pid:
            os._exit(BROKEN)


async def _awaited(result: object) -> object:
    return await result  # type: ignore[misc]
