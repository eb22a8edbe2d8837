"""The format of a log line: ``key=value`` for people, or a JSON object with Laravel's names."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from queuepool.events import Event
from queuepool.log.fields import context_of, fields_of, line_of, pairs, trace_of
from queuepool.log.own_logger import OURS
from queuepool.unix.escape import escaped


@dataclass(frozen=True, slots=True)
class Origin:
    """Which process writes the lines."""

    pool: str
    role: str
    connection: str
    #: returns the id of the running job, empty when there is none
    running: Callable[[], str] = str
    #: returns what the log holds of the running job's context
    context: Callable[[], Mapping[str, Any]] = dict


class Text(logging.Formatter):
    """``TIME LEVEL pool=NAME ROLE pid=N words key=value …``, with further lines indented below it."""

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self._origin = origin

    def format(self, record: logging.LogRecord) -> str:
        words, *below = self._words(record)
        below += _trace(self, record).splitlines()
        return "\n    ".join([f"{self._head(record)} {escaped(words)}", *map(escaped, below)])

    def _head(self, record: logging.LogRecord) -> str:
        at, origin = datetime.fromtimestamp(record.created, UTC), self._origin
        time = f"{at:%Y-%m-%dT%H:%M:%S}.{record.msecs:03.0f}Z"
        return f"{time} {record.levelname} pool={origin.pool} {origin.role} pid={record.process}"

    def _words(self, record: logging.LogRecord) -> list[str]:
        """The record's line, and the lines below it."""
        event, facts = _event(record), _facts(record)
        if event:
            return [self._of_event(event)]
        if facts is not None:
            return _with_facts(record.getMessage(), facts)
        if record.name == OURS:
            return [record.getMessage()]
        first, *more = record.getMessage().splitlines() or [""]
        return [f"{self._of_job(self._origin.running())}{record.name}: {first}", *more]

    def _of_event(self, event: Event) -> str:
        return line_of(event)

    def _of_job(self, identity: str) -> str:
        """What names the running job in the application's lines."""
        return f"id={identity} " if identity else ""


class Json(logging.Formatter):
    """One JSON object per line. Source: WorkCommand.php, writeOutputAsJson (13.x)."""

    def __init__(self, origin: Origin) -> None:
        super().__init__()
        self._origin = origin

    def format(self, record: logging.LogRecord) -> str:
        origin = self._origin
        found: dict[str, Any] = {"level": record.levelname.lower(), "pool": origin.pool, "role": origin.role}
        found |= {"pid": record.process, "connection": origin.connection, **self._fields(record)}
        if trace := _trace(self, record):
            found["trace"] = trace
        at = datetime.fromtimestamp(record.created, UTC)
        return json.dumps({**found, "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.%f}+00:00"}, default=str)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        if event := _event(record):
            return fields_of(event)
        fields = {"message": record.getMessage(), **(_facts(record) or {})}
        if record.name == OURS:
            return fields
        return {"logger": record.name, **_job(self._origin), **self._context(), **fields}

    def _context(self) -> dict[str, Any]:
        found = context_of(self._origin.context())
        return {"context": found} if found else {}


def _with_facts(words: str, facts: Mapping[str, Any]) -> list[str]:
    """Up to three facts go on the line itself, more of them each on a line of its own."""
    if len(facts) <= 3:
        return [f"{words} {pairs(facts)}"]
    width = max(map(len, facts)) + 1
    return [words, *(f"{key.replace('_', ' ') + ':':{width}} {value}" for key, value in facts.items())]


def _job(origin: Origin) -> dict[str, str]:
    """The id of the running job, if there is one."""
    identity = origin.running()
    return {"id": identity} if identity else {}


def _event(record: logging.LogRecord) -> Event | None:
    return getattr(record, "event", None) if record.name == OURS else None


def _facts(record: logging.LogRecord) -> Mapping[str, Any] | None:
    return getattr(record, "facts", None) if record.name == OURS else None


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info:
        return formatter.formatException(record.exc_info)
    event = _event(record)
    return trace_of(event) if event else ""
