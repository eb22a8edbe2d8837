"""The log of a process: where it goes, which events it holds, and the application's own messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping

from queuepool.config.settings import PoolSettings
from queuepool.errors import JobError
from queuepool.events import Event, JobExceptionOccurred, JobProcessed
from queuepool.events.listeners import Listeners
from queuepool.log.formats import Eyes, Json, Origin, TextFormat, line_of
from queuepool.log.handlers import OURS, Passing, Stream, handler_for, log_to

_log = logging.getLogger(OURS)
_others = Passing()


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


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
