"""A second kernel timer beside the alarm, which is the only one that Python can set."""

from __future__ import annotations

import ctypes
import os
import signal
import time

_TO_THREAD = 4  # SIGEV_THREAD_ID in <signal.h>
_NANOSECONDS = 1_000_000_000


class _Event(ctypes.Structure):
    """``struct sigevent``, whose 64 bytes the kernel reads in full."""

    _fields_ = (
        ("value", ctypes.c_void_p), ("signum", ctypes.c_int), ("notify", ctypes.c_int), ("thread", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )  # fmt: skip


class _Setting(ctypes.Structure):
    """``struct itimerspec``."""

    _fields_ = (
        ("every_seconds", ctypes.c_long), ("every_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long),
    )  # fmt: skip


class PosixTimer:
    """Sends a signal to the main thread. A process that this one forks does not have the timer.

    The clock is the alarm's, which stands still while the machine is suspended. Raises ``OSError``.
    """

    def __init__(self, signum: signal.Signals) -> None:
        self._libc = _with_timers()
        self._id = ctypes.c_void_p()
        self._pid = os.getpid()
        # To the main thread, whose number is the process's: elsewhere the signal would not end that thread's wait.
        event = _Event(signum=signum, notify=_TO_THREAD, thread=self._pid)
        self._check(self._libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._id)))

    def arm(self, seconds: float) -> None:
        """Fire once, in ``seconds``; 0 = never. Does nothing in a forked process, which has no timer."""
        if os.getpid() != self._pid:
            return
        whole, nanoseconds = divmod(round(seconds * _NANOSECONDS), _NANOSECONDS)
        setting = _Setting(seconds=whole, nanoseconds=nanoseconds)
        self._check(self._libc.timer_settime(self._id, 0, ctypes.byref(setting), None))

    def _check(self, result: int) -> None:
        if result:
            code = ctypes.get_errno()
            raise OSError(code, f"the kernel refuses a timer: {os.strerror(code)}")


def _with_timers() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    return libc if hasattr(libc, "timer_create") else ctypes.CDLL("librt.so.1", use_errno=True)  # glibc before 2.34
