"""The log of a process: where it goes, which events are in it, and that the application's own messages are too."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping

from queuepool.config.settings import PoolSettings
from queuepool.events import Event, JobProcessed
from queuepool.events.listeners import Listeners
from queuepool.log.fields import line_of
from queuepool.log.formats import OURS, Json, Origin, Text
from queuepool.log.handlers import Stream, handler_for

_log = logging.getLogger(OURS)


def setup(
    settings: PoolSettings, role: str, patience: float, *, first: bool = False, running: Callable[[], str] = str
) -> None:
    """Where this process's log goes; ``patience``: seconds that it may wait for a full pipe.

    ``running`` gives the id of the job that is running, for the lines of the application.

    The ``first`` process of a pool raises ``OSError`` or ``ConfigError`` when that cannot be; the others go on.
    """
    handler = handler_for(settings.log, patience, must_open=first)
    root = logging.getLogger()
    root.handlers[:] = [handler if one in _log.handlers else one for one in root.handlers]  # a template has adopted it
    for former in _log.handlers:
        if isinstance(former, Stream):
            former.end()  # a job should not find it open
    origin = Origin(settings.name, role, settings.connection.name, running)
    handler.setFormatter(Json(origin) if settings.json else Text(origin))
    _log.handlers[:] = [handler]
    _log.propagate = False
    _log.setLevel(logging.WARNING if settings.quiet else logging.DEBUG if settings.verbose else logging.INFO)


def adopt(settings: PoolSettings) -> None:
    """The user's modules are imported: what they log is logged here, unless they have seen to that themselves."""
    _log.disabled = False  # logging.config does that to every logger that it was not told of
    root = logging.getLogger()
    if not root.handlers:
        root.handlers[:] = _log.handlers
        root.setLevel(settings.log_level.upper())


def listen(listeners: Listeners, unlogged: Collection[type[Event]] = ()) -> None:
    """Log every event whose level is on, but for those ``unlogged``; no others need be made."""
    if not _log.isEnabledFor(logging.DEBUG):
        unlogged = {*unlogged, JobProcessed}  # of those ``JobLines`` tells
    for kind in _kinds(Event):
        if kind.words and _log.isEnabledFor(kind.level) and kind not in unlogged:
            listeners.add(kind, write)


def write(event: Event) -> None:
    """A line for this event."""
    _log.log(event.level, "%s", line_of(event), extra={"event": event})


def say(words: str, facts: Mapping[str, object]) -> None:
    """A line for what is no event: more than three facts have lines of their own below it."""
    _log.info("%s", words, extra={"facts": facts})


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)
