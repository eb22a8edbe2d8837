"""What processes of a pool wait with, taken before user code is imported: the kernel's own calls.

gevent and eventlet replace names in Python's modules. A wait in their functions runs other code meanwhile, and a
signal's handler could end it in the middle of that; eventlet takes ``select.poll`` away altogether.

Waits on a descriptor use poll(): select() refuses numbers from 1024 on, which a job that leaks files can reach.
"""

from __future__ import annotations

import os
import select
import sys
import time
from _thread import get_native_id as get_native_id
from _thread import start_new_thread
from collections.abc import Iterable
from types import FrameType

sleep, poll, waitpid = time.sleep, select.poll, os.waitpid
#: starts a kernel thread
start_thread = start_new_thread
#: by module: the names that are replaced, as they were
_ORIGINALS: dict[str, dict[str, object]] = {
    "os": {"fork": os.fork, "waitpid": os.waitpid},
    "select": {"poll": select.poll, "select": select.select},
    "time": {"sleep": time.sleep},
    "_thread": {"start_new_thread": start_new_thread},
}
#: the libraries that are known to replace them
_LIBRARIES = ("gevent", "eventlet")


def replaced() -> list[str]:
    """The names that user code has replaced since, such as ``time.sleep``."""
    found = [
        f"{module}.{name}"
        for module, names in _ORIGINALS.items()
        for name, original in names.items()
        if getattr(sys.modules[module], name, None) is not original
    ]
    socket = sys.modules.get("socket")  # not imported for this alone
    return [*found, *(["socket.socket"] if socket and socket.socket.__module__ != "socket" else [])]


def replacing() -> list[str]:
    """Which of the libraries that replace them are imported."""
    return [name for name in _LIBRARIES if name in sys.modules]


def is_in_library(frame: FrameType | None) -> bool:
    """Whether this frame runs in one of these libraries: an exception would be printed, and a timer stay behind.

    Short waits in there, as for a connection, need no interruption; the long ones use the kernel's calls.
    """
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
        frame = frame.f_back
    return frame is not None


def has_threads() -> bool:
    """Whether a new thread is a kernel thread; else it would run only while this one waits in that library."""
    return sys.modules["_thread"].start_new_thread is start_thread


def give_back() -> None:
    """Put back what user code has taken away without a replacement: the store's client waits with it."""
    for module, names in _ORIGINALS.items():
        for name, original in names.items():
            if not hasattr(sys.modules[module], name):
                setattr(sys.modules[module], name, original)


def is_readable(fd: int, timeout: float) -> bool:
    """Whether there is something to read, or an end of file, within these seconds."""
    return _is_ready(fd, select.POLLIN, timeout)


def is_writable(fd: int, timeout: float) -> bool:
    """Whether there is room to write, or the reader is gone, within these seconds."""
    return _is_ready(fd, select.POLLOUT, timeout)


def readable(fds: Iterable[int], timeout: float) -> set[int]:
    """As ``is_readable``, which of several are."""
    found = poll()
    for fd in fds:
        found.register(fd, select.POLLIN)
    return {fd for fd, _ in found.poll(timeout * 1000)}


def _is_ready(fd: int, events: int, timeout: float) -> bool:
    found = poll()
    found.register(fd, events)
    return bool(found.poll(timeout * 1000))
