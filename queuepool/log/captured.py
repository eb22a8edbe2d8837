"""Put what jobs print into the log at once.

Each line of Python's own streams becomes a line of the log, whole: a line that has no end yet is kept for the job, or
outside of jobs for the thread, that prints it. What C code and other programs write to the descriptors
1 and 2 goes there unchanged.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import BinaryIO, cast

from queuepool.log import own_logger
from queuepool.unix import at_fork

#: most bytes of a line; a longer one continues in the next
_MAX = 8192
#: where the descriptors 1 and 2 led when user code last forked
_led: dict[int, tuple[int, int]] = {}
#: whether this process was forked by user code, which may send what it prints elsewhere
_is_users = False
#: by stream and by who prints it: each line that has no end yet; empty while jobs print whole lines or nothing. The job
#: beside it is kept alive, so that no later one has its identity
INCOMPLETE: dict[tuple[_Lines, int], tuple[bytes, object]] = {}
_NONE: tuple[bytes, object] = b"", None


def _nothing() -> None:
    return None


#: returns the job whose code runs here, if any
_running: Callable[[], object] = _nothing


def _who(job: object) -> int:
    """Who prints here: this job, or without one this thread."""
    return get_ident() if job is None else id(job)


class _Lines(io.RawIOBase):
    """A standard stream that logs each of its lines, whatever the log level: printed text is meant to be seen."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__()
        #: as that of Python's own streams
        self.name, self.mode = f"<{name}>", "wb"
        self._name = name
        self._number = number

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return False

    def write(self, data: object) -> int:
        raw = bytes(data)  # type: ignore[call-overload]
        if _is_users and _place(self._number) != _led[self._number]:
            return self._write_through(raw)
        job = _running()
        key = self, _who(job)
        *lines, rest = (INCOMPLETE.pop(key, _NONE)[0] + raw).split(b"\n")
        for line in lines:
            self._log(line)
        if len(rest) > _MAX:
            self._log(rest)
        elif rest:
            INCOMPLETE[key] = rest, job
        return len(raw)

    def _write_through(self, raw: bytes) -> int:
        """Write where the descriptor leads, as Python's own stream does. Raises ``OSError``."""
        rest = raw
        while rest:
            rest = rest[os.write(self._number, rest) :]
        return len(raw)

    def flush(self) -> None:
        """Log the caller's incomplete line too: a flush asks for it to be seen now."""
        self.end_line(_who(_running()))

    def end_line(self, who: int) -> None:
        """Log this one's incomplete line."""
        self._log(INCOMPLETE.pop((self, who), _NONE)[0])

    def _log(self, line: bytes) -> None:
        line = line.strip(b"\r")
        for first in range(0, len(line), _MAX):
            text = line[first : first + _MAX].decode("utf-8", "replace")
            record = logging.LogRecord(self._name, logging.INFO, "", 0, text, None, None)
            if logger := own_logger():
                logger.out.handle(record)


def log_incomplete() -> None:
    """Log the lines that have no end yet: what is printed from now on belongs to another job."""
    for lines, who in tuple(INCOMPLETE):
        lines.end_line(who)


def log_incomplete_here() -> None:
    """The same, but only for the job whose code runs here: it has ended, and its neighbours have not."""
    mine = _who(_running())
    for lines, who in tuple(INCOMPLETE):
        if who == mine:
            lines.end_line(who)


def capture(running: Callable[[], object] = _nothing) -> None:
    """Capture from now on, until this process ends. A child that user code forks logs its own lines.

    It may point a descriptor elsewhere: then its lines go there. ``running`` returns the job whose code calls it.
    """
    global _running
    _running = running
    at_fork.watch(_note_places, _forget_lines)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        stream.flush()
        if not isinstance(getattr(stream, "buffer", None), _Lines):
            lines = cast(BinaryIO, _Lines(name, number))
            stream = io.TextIOWrapper(lines, encoding="utf-8", errors="backslashreplace", write_through=True)
            stream.mode = "w"  # type: ignore[misc]
            setattr(sys, name, stream)
    if logger := own_logger():
        logger.out.lend(1, 2)


@contextmanager
def captured(running: Callable[[], object]) -> Iterator[None]:
    """Capture within the context; ``running`` as in ``capture``."""
    streams, numbers = (sys.stdout, sys.stderr), [os.dup(1), os.dup(2)]
    capture(running)
    try:
        yield
    finally:
        log_incomplete()
        sys.stdout, sys.stderr = streams
        for number, former in enumerate(numbers, start=1):
            os.dup2(former, number)
            os.close(former)


def _note_places() -> None:
    _led.update({number: _place(number) for number in (1, 2)})


def _forget_lines() -> None:
    """In a child that user code forked: its parent logs the incomplete lines."""
    global _is_users
    _is_users = True
    INCOMPLETE.clear()


def _place(number: int) -> tuple[int, int]:
    try:
        about = os.fstat(number)
    except OSError:
        return (0, 0)  # closed
    return about.st_dev, about.st_ino
