"""The log of a process: where it goes, which events it holds, and the application's own messages.

Whatever user code does to loggers and handlers, the pool's log goes on. It may configure logging at any time: a job
that migrates a database by alembic switches off every logger that its file does not name. So our handler is not in any
logger's list, and nothing needs repair after a job.

A write waits only for a limited time; lines that cannot be written are dropped and counted.
"""

from __future__ import annotations

import logging
import math
import os
import select
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path

from queuepool.config.settings import PoolSettings
from queuepool.errors import ConfigError, JobError
from queuepool.events import Event, JobExceptionOccurred, JobProcessed
from queuepool.events.listeners import Listeners
from queuepool.log.formats import OURS, Eyes, Json, Origin, TextFormat, line_of
from queuepool.unix.originals import is_writable
from queuepool.unix.trusted_path import open_to_append

_log = logging.getLogger(OURS)
#: paths of descriptors that are already open: a socket there, as systemd gives, cannot be opened again
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
#: most jobs in a second that get a line each
_MOST = 100
_SECOND = 1.0


def setup(
    settings: PoolSettings,
    role: str,
    write_timeout: float,
    *,
    first: bool = False,
    running: Callable[[], str] = str,
    context: Callable[[], Mapping[str, object]] = dict,
) -> None:
    """Set up this process's log; ``write_timeout`` is how many seconds it may wait for a full pipe.

    ``running`` returns the id of the running job and ``context`` its context, for the application's lines.

    The ``first`` process of a pool raises ``OSError`` or ``ConfigError`` when the log cannot be opened; the others
    continue without it.
    """
    handler = handler_for(settings.log, write_timeout, must_open=first)
    origin = Origin(settings.name, role, settings.connection.name, running, context)
    handler.setFormatter(_format(settings, origin, handler))
    log_to(handler, logging.WARNING if settings.quiet else logging.DEBUG if settings.verbose else logging.INFO)
    logging.lastResort = _others  # for the application's records, if it removes all handlers from its root logger


def _format(settings: PoolSettings, origin: Origin, handler: Stream) -> logging.Formatter:
    if settings.json:
        return Json(origin)
    return Eyes(origin, names_pool=settings.has_neighbours) if handler.is_terminal else TextFormat(origin)


def adopt(settings: PoolSettings) -> None:
    """Call after the user's modules are imported: log their messages here, unless they have configured logging."""
    root = logging.getLogger()
    if not root.handlers:
        root.handlers[:] = [_others]
        root.setLevel(settings.log_level.upper())


def listen(listeners: Listeners, unlogged: Collection[type[Event]] = ()) -> None:
    """Log every event whose level is enabled, except those ``unlogged``; the others need not be built."""
    if not _log.isEnabledFor(logging.DEBUG):
        unlogged = {*unlogged, JobProcessed}  # ``JobLines`` logs those
    for kind in _kinds(Event):
        if kind.words and _log.isEnabledFor(kind.level) and kind not in unlogged:
            listeners.add(kind, write)


def write(event: Event) -> None:
    """Log a line for this event."""
    # If the handler was not called, nothing raised: the next line, on what happens to the job, says why.
    if isinstance(event, JobExceptionOccurred) and isinstance(event.error, JobError) and not event.error.began:
        return
    _log.log(event.level, "%s", line_of(event), extra={"event": event})


def say(words: str, facts: Mapping[str, object]) -> None:
    """Log a line that is not an event; more than three facts get a line each below it."""
    _log.info("%s", words, extra={"facts": facts})


class JobLines:
    """Counts the jobs that a worker has done this second; all times are monotonic seconds.

    The first jobs of a second get a line each. If there are more, one line at its end sums up the rest, and another
    the whole next second.
    """

    def __init__(self) -> None:
        # At DEBUG each event is logged anyway, and above INFO no such line is wanted.
        self._is_on = _log.getEffectiveLevel() == logging.INFO
        self._singles = _MOST if self._is_on else 0
        self._count = 0
        self._since = time.monotonic()
        self._until = self._since + _SECOND if self._is_on else math.inf

    def is_due(self, now: float) -> bool:
        """Count one more job; returns whether a line is due."""
        self._count += 1
        return self._count <= self._singles or now >= self._until

    def write(self, event: JobProcessed, now: float) -> None:
        """Write the lines that are due after the job counted last."""
        if now >= self._until:
            self._count -= 1
            self.sum_up(now)
            self._count += 1
        if self._count <= self._singles:
            write(event)

    def rest(self) -> None:
        """Sum up if the second is over; called while no job runs."""
        if (now := time.monotonic()) >= self._until:
            self.sum_up(now)

    def sum_up(self, now: float) -> None:
        """Write one line for the jobs that have none yet, and start another second."""
        if self._is_on and (count := self._count - self._singles) > 0:
            say("jobs done", {"count": count, "seconds": round(now - self._since, 3)})
        is_busy = self._count > _MOST and now < self._until + _SECOND
        self._singles = 0 if is_busy else _MOST
        self._count, self._since, self._until = 0, now, now + _SECOND


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


class OwnLogger(logging.Logger):
    """Writes records of level ``least`` or above to ``out``. Other settings have no effect on it."""

    out: Stream
    least: int

    @property
    def disabled(self) -> bool:
        return False

    @disabled.setter
    def disabled(self, _: bool) -> None:
        """``logging.config`` switches off what it does not configure."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - as in `logging`
        return level >= self.least  # also after ``logging.disable``

    def getEffectiveLevel(self) -> int:  # noqa: N802
        return self.least

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802
        self.out.handle(record)
        super().callHandlers(record)  # those that user code has added


class Passing(logging.Handler):
    """Passes an application's records on to the log. User code may set a level, a format or a filter on it alone."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = logging.getLogger(OURS)
        if record.name != OURS and isinstance(logger, OwnLogger):
            logger.out.handle(record)


_others = Passing()


def own_logger() -> OwnLogger | None:
    """``None`` where there is no pool's log, as in a producer."""
    logger = logging.getLogger(OURS)
    return logger if isinstance(logger, OwnLogger) else None


def log_to(out: Stream, least: int) -> None:
    """Make the logger write to ``out`` from now on; its former descriptor is closed."""
    logger = logging.getLogger(OURS)
    if isinstance(logger, OwnLogger):
        logger.out.end()  # no job must find its descriptor open
    logger.__class__ = OwnLogger
    assert isinstance(logger, OwnLogger)
    logger.out, logger.least, logger.propagate = out, least, False


def handler_for(path: Path | None, write_timeout: float, *, must_open: bool) -> Stream:
    """The handler for this path; ``None`` is standard error. ``write_timeout``: seconds to wait for a full pipe.

    Raises ``OSError`` and ``ConfigError`` if it ``must_open`` and cannot.
    """
    number = _STANDARD.get(str(path)) if path else 2
    if number is not None or path is None:
        return Stream(_unblocking(number or 2), write_timeout, number or 2)
    return File(path, write_timeout, must_open=must_open)


class Stream(logging.Handler):
    """Writes to an open descriptor. A full pipe costs lines; it does not block the watchdog (the master)."""

    def __init__(self, fd: int, write_timeout: float, origin: int | None = None) -> None:
        super().__init__()
        #: the descriptor that it was opened from, without O_NONBLOCK, with which others' writes would fail
        self._origin = origin
        self._write_timeout = write_timeout
        self._dropped = 0
        self._fd = fd
        #: other descriptors that lead here
        self._lent: tuple[int, ...] = ()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            raw = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001 - the application's arguments may not fit its format
            self.handleError(record)
            return
        if self._dropped:
            raw = b"(%d lines were dropped: they could not be written)\n" % self._dropped + raw
        try:
            step = self._step(len(raw))
            for first in range(0, len(raw), step):
                if not self._has_room():
                    self._dropped += 1
                    return
                os.write(self._fd, raw[first : first + step])
            self._dropped = 0
        except (OSError, ValueError):
            self._dropped += 1  # closed, or no room on the disk: there is nowhere to report it

    @property
    def is_terminal(self) -> bool:
        """Whether it is a terminal."""
        try:
            return os.isatty(self._fd)
        except OSError:
            return False

    def end(self) -> None:
        """Close the descriptor. ``close`` does not: an application's ``logging.config`` closes every handler."""
        if self._fd > 2:
            with suppress(OSError):  # a job has closed it
                os.close(self._fd)
            self._fd = -1
        self.close()

    def lend(self, *numbers: int) -> None:
        """Point these descriptors here, for output that bypasses this handler, if others can share its descriptor."""
        self._lent = numbers
        source = self._shared()
        for number in numbers:
            if source is not None and source != number:
                os.dup2(source, number)

    def _shared(self) -> int | None:
        """A descriptor that others can write to as well; ``None`` if there is none."""
        return self._origin

    def _step(self, size: int) -> int:
        """How many bytes to write at once.

        A file takes a whole line, unmixed with those of others. A pipe with room takes ``PIPE_BUF`` bytes: a longer
        write could wait for its reader forever.
        """
        return size if stat.S_ISREG(os.fstat(self._fd).st_mode) else select.PIPE_BUF

    def _has_room(self) -> bool:
        # After a wait that failed, do not wait again until the pipe has been read.
        write_timeout = 0.0 if self._dropped else self._write_timeout
        return is_writable(self._fd, write_timeout)


class File(Stream):
    """Writes to a path, which is looked up again for every line, so that the file may be moved away at any time.

    A directory that was removed is created again. Where that fails, a process goes on with the file that it has open,
    or with standard error if it has none.
    """

    def __init__(self, path: Path, write_timeout: float, *, must_open: bool) -> None:
        super().__init__(-1 if must_open else 2, write_timeout)
        self.path = path
        with nullcontext() if must_open else suppress(OSError, ConfigError):
            self._fd = open_to_append("log", path) if must_open else self._reopened()

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ConfigError):  # continue with the file that is open
            if not self._is_in_place():
                former, self._fd = self._fd, self._reopened()
                if former > 2:
                    os.close(former)
                self.lend(*self._lent)
        super().emit(record)

    def _shared(self) -> int | None:
        """Only a regular file: a FIFO or a terminal was opened so that a write may fail."""
        try:
            return self._fd if stat.S_ISREG(os.fstat(self._fd).st_mode) else None
        except OSError:
            return None

    def _reopened(self) -> int:
        """Raises ``OSError`` and ``ConfigError``."""
        try:
            return open_to_append("log", self.path)
        except FileNotFoundError:  # the directory was there when the pool started
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return open_to_append("log", self.path)

    def _is_in_place(self) -> bool:
        try:
            return self._fd >= 0 and os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False


def _unblocking(fd: int) -> int:
    """The same pipe, opened again with O_NONBLOCK: another process may fill it between our check and our write."""
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        pass  # closed, or no /proc, or another user's pipe
    return fd
