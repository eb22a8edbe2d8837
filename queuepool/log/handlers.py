"""Where log lines go: nobody waits there longer than is bearable; what cannot be written is dropped and counted."""

from __future__ import annotations

import logging
import os
import select
import stat
from contextlib import nullcontext, suppress
from pathlib import Path

from queuepool.errors import ConfigError
from queuepool.unix.trusted_path import open_to_append

#: names of what is open already: a socket there, as systemd gives, cannot be opened again
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}


def handler_for(path: Path | None, patience: float, *, must_open: bool) -> Stream:
    """``patience``: seconds to wait for a full pipe. Raises ``OSError`` and ``ConfigError`` if it ``must_open``."""
    number = _STANDARD.get(str(path)) if path else 2
    if number is not None or path is None:
        return Stream(_unblocking(number or 2), patience, number or 2)
    return File(path, patience, must_open=must_open)


class Stream(logging.Handler):
    """An open descriptor: a full pipe loses lines, not the watchdog."""

    def __init__(self, fd: int, patience: float, origin: int | None = None) -> None:
        super().__init__()
        #: what it was opened from: without its O_NONBLOCK, which would fail others' writes
        self._origin = origin
        self._patience = patience
        self._dropped = 0
        self._fd = fd
        #: descriptors that lead here too
        self._lent: tuple[int, ...] = ()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            raw = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001 - what the application logs may not fit its own format
            self.handleError(record)
            return
        if self._dropped:
            raw = b"(%d lines were dropped: nobody read them)\n" % self._dropped + raw
        try:
            step = self._step(len(raw))
            for first in range(0, len(raw), step):
                if not self._has_room():
                    self._dropped += 1
                    return
                os.write(self._fd, raw[first : first + step])
            self._dropped = 0
        except (OSError, ValueError):
            self._dropped += 1  # closed, or no room on the disk: there is nowhere to say so

    def end(self) -> None:
        """Close it. ``close`` does not: the ``logging.config`` of an application closes every handler there is."""
        if self._fd > 2:
            with suppress(OSError):  # a job has closed it
                os.close(self._fd)
            self._fd = -1
        self.close()

    def lend(self, *numbers: int) -> None:
        """Have these descriptors lead here, for what is written past us; where nobody could be made to wait."""
        self._lent = numbers
        source = self._shared()
        for number in numbers:
            if source is not None and source != number:
                os.dup2(source, number)

    def _shared(self) -> int | None:
        """A descriptor that others may write to as well."""
        return self._origin

    def _step(self, size: int) -> int:
        """A file takes a line at once, unmixed with those of others. A pipe with room takes so many bytes: a longer
        write would wait for its reader, however long.
        """
        return size if stat.S_ISREG(os.fstat(self._fd).st_mode) else select.PIPE_BUF

    def _has_room(self) -> bool:
        # Who waited in vain does not wait again until somebody has read.
        patience = 0.0 if self._dropped else self._patience
        return bool(select.select([], [self._fd], [], patience)[1])


class File(Stream):
    """A path, looked up again at every line, so that it may be moved away at any time."""

    def __init__(self, path: Path, patience: float, *, must_open: bool) -> None:
        super().__init__(-1, patience)
        self.path = path
        with nullcontext() if must_open else suppress(OSError, ConfigError):
            self._fd = open_to_append("log", path)

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ConfigError):  # what was open stays so
            if not self._is_in_place():
                former, self._fd = self._fd, open_to_append("log", self.path)
                if former >= 0:
                    os.close(former)
                self.lend(*self._lent)
        super().emit(record)

    def _shared(self) -> int | None:
        """Not a FIFO or a terminal: it was opened so that a write may fail."""
        try:
            return self._fd if stat.S_ISREG(os.fstat(self._fd).st_mode) else None
        except OSError:
            return None

    def _is_in_place(self) -> bool:
        try:
            return self._fd >= 0 and os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False


def _unblocking(fd: int) -> int:
    """The same pipe, opened for ourselves: between our look and our write another process may take the last room."""
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        pass  # closed, or no /proc, or somebody else's pipe
    return fd
