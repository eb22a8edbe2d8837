"""Wait for a descriptor by poll(): select() refuses numbers from 1024 on, which a job that leaks files can reach."""

from __future__ import annotations

import select

from queuepool.unix.originals import poll


def is_readable(fd: int, timeout: float) -> bool:
    """Whether there is something to read, or an end, within these seconds."""
    return _is_ready(fd, select.POLLIN, timeout)


def is_writable(fd: int, timeout: float) -> bool:
    """Whether there is room to write, or no reader any more, within these seconds."""
    return _is_ready(fd, select.POLLOUT, timeout)


def _is_ready(fd: int, events: int, timeout: float) -> bool:
    found = poll()
    found.register(fd, events)
    return bool(found.poll(timeout * 1000))
