"""Logs are a listener: one line an event, ``key=value``, or JSON with Laravel's names."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from queuepool.escape import escaped
from queuepool.events import Event
from queuepool.lines import fields_of, line_of, trace_of
from queuepool.listeners import Listeners
from queuepool.log_stream import Stream, handler_for
from queuepool.settings import PoolSettings

_log = logging.getLogger("queuepool")


def setup(settings: PoolSettings, role: str, patience: float, *, first: bool = False) -> None:
    """Where this process's log goes; ``patience``: seconds that it may wait for a full pipe.

    The ``first`` process of a pool raises ``OSError`` or ``ConfigError`` when that cannot be; the others go on.
    """
    handler = handler_for(settings.log, patience, must_open=first)
    for former in _log.handlers:
        if isinstance(former, Stream):
            former.close()  # a job should not find it open
    handler.setFormatter(_Json(role, settings.connection.name) if settings.json else _Text(role))
    _log.handlers[:] = [handler]
    _log.propagate = False
    detailed = settings.verbose or settings.json
    _log.setLevel(logging.WARNING if settings.quiet else logging.DEBUG if detailed else logging.INFO)


def listen(listeners: Listeners) -> None:
    """Log every event whose level is on; of the others nobody need know."""
    for kind in _kinds(Event):
        if kind.words and _log.isEnabledFor(kind.level):
            listeners.add(kind, _write)


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _write(event: Event) -> None:
    _log.log(event.level, "%s", line_of(event), extra={"event": event})


class _Text(logging.Formatter):
    """``TIME LEVEL ROLE pid=N words key=value …``, and below it an indented trace."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        head = f"{at:%Y-%m-%dT%H:%M:%S}.{record.msecs:03.0f}Z {record.levelname} {self._role} pid={record.process}"
        lines = [f"{head} {escaped(record.getMessage())}"]
        return "\n    ".join([*lines, *(escaped(line) for line in _trace(self, record).splitlines())])


class _Json(logging.Formatter):
    """One object a line. Source: WorkCommand.php, writeOutputAsJson (13.x)."""

    def __init__(self, role: str, connection: str) -> None:
        super().__init__()
        self._role = role
        self._connection = connection

    def format(self, record: logging.LogRecord) -> str:
        event: Event | None = getattr(record, "event", None)
        found: dict[str, Any] = {"level": record.levelname.lower(), "role": self._role, "pid": record.process}
        found |= {"connection": self._connection}
        found |= fields_of(event) if event else {"message": record.getMessage()}
        trace = _trace(self, record)
        if trace:
            found["trace"] = trace
        at = datetime.fromtimestamp(record.created, UTC)
        return json.dumps({**found, "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%f}+00:00"})


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    event: Event | None = getattr(record, "event", None)
    return trace_of(event) if event else ""
