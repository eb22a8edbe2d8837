"""Enters and leaves what ``@lifespan`` has registered, on the loop of a worker that runs jobs side by side.

The methods are for the main thread. They wait for the loop, which may hang in the user's code: at the entry the alarm
of the boot ends the process, at the end the worker leaves without it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

from queuepool.errors import BootFailure
from queuepool.jobs.around import LIFESPANS, Lifespan, lifespan_name
from queuepool.log.tracebacks import summary, traceback_of

if TYPE_CHECKING:
    from queuepool.worker.lane_loop import LaneLoop

#: seconds that leaving all of them may take
_LEAVE_TIMEOUT = 5.0
#: seconds between looks at signals
_LONGEST = 1.0
_log = logging.getLogger("queuepool")


def refuse_lifespans() -> None:
    """Refuse ``@lifespan`` in a worker that runs one job at a time. Raises ``BootFailure`` if any is registered."""
    if LIFESPANS:
        name = lifespan_name(LIFESPANS[0])
        raise BootFailure(
            f"@lifespan {name}: a worker that runs one job at a time has no event loop that lasts as long as it does:"
            " set concurrency above 1, or open in each job what it needs"
        )


class Lifespans:
    """The lifespans of one worker. ``context``: where their ``contextvars`` are set, for all jobs."""

    def __init__(self, loop: LaneLoop, context: Context) -> None:
        self._loop = loop
        self._context = context
        self._entered: list[tuple[str, AsyncIterator[None]]] = []
        self._problem: BootFailure | None = None

    def enter(self) -> None:
        """Enter all. Raises ``BootFailure``, after leaving those that were entered."""
        self._wait_for(self._enter(), math.inf)
        if self._problem:
            self.leave()
            raise self._problem

    def leave(self) -> None:
        """Leave all that were entered, the last one first."""
        if self._entered and not self._wait_for(self._leave(), _LEAVE_TIMEOUT):
            _log.warning("@lifespan: what is left has not ended within %g s: the worker leaves", _LEAVE_TIMEOUT)

    async def _enter(self) -> None:
        for function in LIFESPANS:
            try:
                self._entered.append((lifespan_name(function), await _begun(function)))
            # Even SystemExit: it must not end the loop.
            except BaseException as error:  # noqa: BLE001
                problem = f"@lifespan {lifespan_name(function)}: {' '.join(summary(error).split())}"
                self._problem = BootFailure(problem, traceback_of(error))
                return

    async def _leave(self) -> None:
        while self._entered:
            name, steps = self._entered.pop()
            try:
                await anext(steps)
            except StopAsyncIteration:
                continue
            except BaseException as error:  # noqa: BLE001 - as above
                _log.warning("@lifespan %s raised at its end", name, exc_info=error)
            else:
                _log.warning("@lifespan %s yielded twice: what follows its second yield has not run", name)

    def _wait_for(self, work: Coroutine[Any, Any, None], seconds: float) -> bool:
        """Whether it ended within so many seconds."""
        ended: list[object] = []
        self._loop.loop.call_soon_threadsafe(self._begin, work, ended)
        until = time.monotonic() + seconds
        while not ended and (left := until - time.monotonic()) > 0:
            self._loop.bell.wait(min(left, _LONGEST), lambda: ended)
        return bool(ended)

    def _begin(self, work: Coroutine[Any, Any, None], ended: list[object]) -> None:
        """On the loop."""
        task = self._loop.loop.create_task(work, context=self._context)
        task.add_done_callback(ended.append)
        task.add_done_callback(lambda _: self._loop.bell.ring())


async def _begun(function: Lifespan) -> AsyncIterator[None]:
    """The generator, at its yield. Raises what it raises."""
    steps = function()
    try:
        await anext(steps)
    except StopAsyncIteration:
        raise RuntimeError("it did not yield") from None
    return steps
