"""Signals that have arrived when the call returns: ``os.kill`` returns before anything has become of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from tests.support.eventually import eventually
from tests.support.pools import is_gone, psutil_gone


def halt(*pids: int) -> None:
    """Stop them, and see them stopped: until then one on another processor finishes what it is at."""
    _send(signal.SIGSTOP, pids)
    eventually(lambda: all(is_halted(pid) or is_gone(pid) for pid in pids))


def go_on(*pids: int) -> None:
    """Let them go on that were halted, and are still there."""
    _send(signal.SIGCONT, pids)


@contextmanager
def halted(*pids: int) -> Iterator[None]:
    """They do nothing meanwhile."""
    halt(*pids)
    try:
        yield
    finally:
        go_on(*pids)


def is_halted(pid: int) -> bool:
    with psutil_gone():
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    return False


def kill(*pids: int) -> None:
    """Kill them, as if all at once, and see them dead: none can act on the death of another."""
    _send(signal.SIGSTOP, pids)
    _send(signal.SIGKILL, pids)
    eventually(lambda: all(map(is_gone, pids)))


def _send(signum: signal.Signals, pids: tuple[int, ...]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended by itself meanwhile
            os.kill(pid, signum)
