"""Locks on a byte of a file: the kernel keeps them for a process, and releases them when it ends."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: the kernel's struct flock: kind, whence, start, length, pid
_FLOCK = struct.Struct("hhlli0l")


def lock(fd: int, byte: int = 0) -> None:
    """Take the lock now. Raises ``OSError`` when another process has it.

    It ends when this process closes any descriptor of the file, and no child inherits it.
    """
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)


def holder(fd: int) -> int | None:
    """The pid of another process that has a lock on the file, 0 for one in another container; ``None``: none."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else max(int(pid), 0)


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Within the block, hold the lock of this file, which is created for it; ``False`` if it is taken. Never waits.

    Unlike the locks above it also excludes this process's other threads. Raises ``OSError``.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
