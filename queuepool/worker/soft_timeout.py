"""The soft timeout: ``SoftTimeout`` is raised in a handler, and in no other code of its worker."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING

from queuepool import stores
from queuepool.errors import SoftTimeout
from queuepool.events import listeners
from queuepool.unix import at_fork, handlers, signals

if TYPE_CHECKING:
    from queuepool.unix.posix_timer import PosixTimer

_SIGNAL = signal.SIGRTMIN
#: seconds until the next attempt where the first would have raised in code that is not the handler's
_AGAIN = 0.001
#: an exception out of these frames would lose a stop signal, be ignored around a fork, be taken for the listener's, or
#: break off a command to a store: it would be unknown whether a push was stored, and a client with C code has crashed
_SHIELDED = (signals.__file__, handlers.__file__, at_fork.__file__, listeners.__file__, stores.__path__[0])


class SoftTimer:
    """Calls handlers; the kernel's timer is made for the first of them.

    A signal may come at any moment, also as the handler returns. So the timer's Python handler raises only while
    ``_runs``, which changes in the lines next to the call, and then only in frames that the call has made.
    """

    def __init__(self) -> None:
        self._timer: PosixTimer | None = None
        self._runs = False
        self._seconds = 0.0

    def call(self, function: Callable[[], object], seconds: float) -> object:
        """Call the function, which is in the main thread, and raise ``SoftTimeout`` in it after ``seconds``.

        Code that blocks in C raises when it returns to Python; a system call returns at once (PEP 475).
        """
        timer = self._armed(seconds)
        try:
            self._runs = True
            return function()
        finally:
            self._runs = False
            timer.arm(0.0)

    def _armed(self, seconds: float) -> PosixTimer:
        self._seconds = seconds
        # Each time: user code may have changed handler and mask. A signal that it had blocked is handled now, too late.
        signals.listen_for(_SIGNAL, self._on_signal)
        if self._timer is None:
            from queuepool.unix.posix_timer import PosixTimer  # imported here: few workers have such jobs

            self._timer = PosixTimer(_SIGNAL)
        self._timer.arm(seconds)
        return self._timer

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if not self._runs or self._timer is None:
            return  # too late: the handler has ended
        if not _is_in_handler(frame):
            self._timer.arm(_AGAIN)
            return
        self._runs = False
        raise SoftTimeout(self._seconds)


_CALL = SoftTimer.call.__code__


def _is_in_handler(frame: FrameType | None) -> bool:
    """Whether what is raised in this frame reaches the handler: it is the handler's, or that of code that it called."""
    if frame is None or frame.f_code is _CALL:
        return False  # about to begin, or just ended
    while frame is not None and frame.f_code is not _CALL:
        # What a __del__ raises, Python ignores.
        if frame.f_code.co_filename.startswith(_SHIELDED) or frame.f_code.co_name == "__del__":
            return False
        frame = frame.f_back
    return True


async def limited(work: Awaitable[object], seconds: float, soft_timeout: float) -> object:
    """Await the work, and cancel it after ``seconds``. Raises ``SoftTimeout`` if it ends by that cancellation."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if limit.expired() and isinstance(error.__cause__, asyncio.CancelledError):
            raise SoftTimeout(soft_timeout) from error.__cause__
        raise
