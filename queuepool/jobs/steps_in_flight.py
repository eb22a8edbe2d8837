"""The steps and rows of an attempt that run now: none is cut in its effect because another one has ended.

Tasks and threads of a job may run several side by side. A job that is to leave its worker leaves when the last of them
ends. Until then the others return, and no further one begins.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar

from queuepool.errors import Leaving

#: seconds for which one waits for the others: they may themselves wait for it, and then it must begin
_PATIENCE = 5.0


class RunningPart:
    """A step, or the body of a row, while it runs: a context."""

    __slots__ = ("_flight", "is_step")

    def __init__(self, flight: StepsInFlight, *, is_step: bool) -> None:
        self.is_step = is_step
        self._flight = flight

    def __enter__(self) -> None:
        _around.set((*_around.get(), self))

    def __exit__(self, *_: object) -> None:
        around = _around.get()
        is_last = around and around[-1] is self
        _around.set(around[:-1] if is_last else tuple(part for part in around if part is not self))
        self._flight.ends(self)


#: those around the code that runs here; tasks inherit them, new threads do not
_around: ContextVar[tuple[RunningPart, ...]] = ContextVar("queuepool_parts", default=())


class StepsInFlight:
    """Those of one attempt, for all its tasks and threads."""

    def __init__(self) -> None:
        self._changes = threading.Lock()
        self._parts: set[RunningPart] = set()
        self._is_leaving = False
        self._has_lost_patience = False
        #: done as soon as the next one ends, if anyone waits for that
        self._next_end: Future[None] | None = None

    @property
    def is_within_step(self) -> bool:
        """Whether the code here runs within a step. That must not be cut, and is not kept before it ends."""
        around = _around.get()
        return bool(around) and any(part.is_step and part in self._parts for part in around)

    @property
    def has_others(self) -> bool:
        """Whether a step or a row runs that is not around the code here."""
        with self._changes:
            return not self._parts.issubset(_around.get())

    def leave(self) -> bool:
        """The attempt is to leave; returns whether it may do so at once."""
        with self._changes:
            self._is_leaving = True
            return self._parts.issubset(_around.get())

    def begin(self, *, is_step: bool, may_leave: Callable[[], bool]) -> RunningPart:
        """A step or a row begins. If the attempt is to leave, wait until no other runs, and raise ``Leaving``.

        ``may_leave``: whether that may come here.
        """
        waits = not _is_on_a_loop()  # where the others could not go on meanwhile
        while (part := self._begun(is_step, may_leave, waits=waits)) is None:
            self._wait()
        return part

    async def begin_aside(self, *, is_step: bool, may_leave: Callable[[], bool]) -> RunningPart:
        """As ``begin``, for a coroutine."""
        while (part := self._begun(is_step, may_leave, waits=True)) is None:
            await self._wait_aside()
        return part

    def _begun(self, is_step: bool, may_leave: Callable[[], bool], *, waits: bool) -> RunningPart | None:
        with self._changes:
            if self._is_leaving and may_leave():
                if self._parts.issubset(_around.get()):
                    raise Leaving
                if waits and not self._has_lost_patience:
                    self._next_end = self._next_end or Future()
                    return None
            part = RunningPart(self, is_step=is_step)
            self._parts.add(part)
            return part

    def ends(self, part: RunningPart) -> None:
        """This one has ended."""
        with self._changes:
            self._parts.discard(part)
            ended, self._next_end = self._next_end, None
        if ended:
            ended.set_result(None)

    def _wait(self) -> None:
        if ended := self._next_end:
            began = time.monotonic()
            with suppress(TimeoutError):
                ended.result(_PATIENCE)
            self._has_lost_patience |= time.monotonic() - began >= _PATIENCE

    async def _wait_aside(self) -> None:
        if ended := self._next_end:
            # Not wait_for: if it is cancelled, so is the future of all who wait.
            done, _ = await asyncio.wait([asyncio.wrap_future(ended)], timeout=_PATIENCE)
            self._has_lost_patience |= not done


def _is_on_a_loop() -> bool:
    return asyncio._get_running_loop() is not None
