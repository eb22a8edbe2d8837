"""The format of a log line: ``key=value``, a JSON object, or short, aligned and coloured for people at a terminal.

An event's fields have Laravel's names.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any

from queuepool.errors import JobError
from queuepool.events import (
    BootFailed,
    Event,
    JobEvent,
    JobExceptionOccurred,
    JobFacts,
    JobFailed,
    JobProcessed,
    JobProcessing,
    JobReleased,
    LoopBlocked,
)
from queuepool.log.tracebacks import summary, text_of
from queuepool.payload.context import MOST_LOGGED
from queuepool.unix.escape import escaped

#: our own logger; a record of another name is the application's
OURS = "queuepool"
#: most characters of a field: a job's exception may have any size
_MAX_TEXT = 8192
#: most characters of a context, names and values
_MAX_CONTEXT = 4 * _MAX_TEXT
#: the name that stands for the values left out
_MORE = "…"
#: Source: WorkCommand.php, writeOutputAsJson (13.x)
_STATUS: dict[type[Event], tuple[str, str]] = {
    JobProcessing: ("starting", ""),
    JobProcessed: ("success", "deleted"),
    JobReleased: ("released_after_exception", "released"),
    JobFailed: ("failed", "failed"),
}
#: widths of the columns: who, what, and the job's name; what is longer moves the rest of its line
_WHO, _WHAT, _NAME = 9, 12, 24
#: characters of an id in a line about which nothing need be done
_ID = 8
_FAINT, _PLAIN = "\x1b[2m", "\x1b[0m"
_GREEN, _YELLOW, _RED = "\x1b[32m", "\x1b[33m", "\x1b[31m"
#: fields that the line shows in its own way, or that name its job
_SAID = frozenset((
    "event", "status", "result", "trace", "context", "tags", "id", "uuid", "queue", "job", "attempts",
    "duration", "wait", "delay", "exception", "message",
))  # fmt: skip
_DEFAULT = "default"


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


class TextFormat(logging.Formatter):
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
    """Up to three facts go on the line itself; more get a line each below it."""
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


def fields_of(event: Event) -> dict[str, Any]:
    """The event's fields, ready for JSON; empty ones are left out."""
    status, result = _STATUS.get(type(event), ("", ""))
    if isinstance(event, JobReleased) and event.error is None:
        status = "released"
    found: dict[str, Any] = {"event": type(event).__name__, "status": status, "result": result}
    for field in fields(event):
        if not field.repr:
            continue
        found |= _named(field.name, getattr(event, field.name))
    return {key: value for key, value in found.items() if value not in ("", None, {}, [])}


def line_of(event: Event) -> str:
    """The event's line: ``words key=value …``."""
    found = fields_of(event)
    hidden = {"event", "status", "result", "trace", "context", "tags"} | (
        {"uuid"} if found.get("uuid") == found.get("id") else set()
    )
    shown = {key: value for key, value in found.items() if key not in hidden}
    return f"{event.words} {pairs(shown)}".rstrip()


def pairs(facts: Mapping[str, Any]) -> str:
    """``key=value …``; values with spaces are quoted."""
    return " ".join(f"{key}={_value(value)}" for key, value in facts.items())


def trace_of(event: Event) -> str:
    """The lines below the event's line: why a job raised or a boot failed, where a job blocks. Empty for others."""
    if isinstance(event, (BootFailed, LoopBlocked)):
        return event.trace
    if isinstance(event, JobExceptionOccurred) and not isinstance(event.error, JobError):
        return text_of(event.error)
    return ""


def context_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """A job's context for JSON. A value that is too long is cut; if there are too many, the first ones are kept."""
    found: dict[str, Any] = {}
    room = _MAX_CONTEXT
    for name, value in data.items():
        shown, text = _cut(value)
        room -= len(name) + len(text)
        if room < 0 or len(found) == MOST_LOGGED:
            return {**found, _MORE: "left out"}
        found[name] = shown
    return found


def _cut(value: Any) -> tuple[Any, str]:
    """The value, and its text; the text in its place if that is too long."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return (value, text) if len(text) <= _MAX_TEXT else (text[:_MAX_TEXT],) * 2


def _named(name: str, value: Any) -> dict[str, Any]:
    match value:
        case JobFacts():
            facts = {
                "id": value.id,
                "uuid": value.uuid,
                "queue": value.queue,
                "job": value.name[:_MAX_TEXT],
            }
            more = {"tags": list(value.tags), "context": context_of(value.context or {})}
            return {**facts, "attempts": value.attempt, **more}
        case BaseException():
            return {"exception": type(value).__name__, "message": summary(value).partition(": ")[2][:_MAX_TEXT]}
        case datetime():
            return {name: value.isoformat()}
        case float():
            return {name: round(value, 4)}
        case tuple():
            return {name: ",".join(map(str, value))}
    return {name: value[:_MAX_TEXT] if isinstance(value, str) else value}


def _value(value: Any) -> str:
    text = str(value)
    if not text or any(char in text for char in ' "='):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


class Eyes(TextFormat):
    """``TIME WHO words``: the time of day, no pid, and a job's end in one short line.

    ``names_pool``: others are on the same terminal.
    """

    def __init__(self, origin: Origin, *, names_pool: bool) -> None:
        super().__init__(origin)
        who = origin.role.replace("=", " ")
        self._who = f"{origin.pool} {who}" if names_pool else who
        self._is_coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"

    def format(self, record: logging.LogRecord) -> str:
        line, end, below = super().format(record).partition("\n")
        if self._is_coloured:
            time, gap, words = line.partition(" ")
            colour = _colour_of(record)
            line = f"{_FAINT}{time}{_PLAIN}{gap}{colour}{words}{_PLAIN if colour else ''}"
        return f"{line}{end}{below}"

    def _head(self, record: logging.LogRecord) -> str:
        head = f"{datetime.fromtimestamp(record.created):%H:%M:%S} {self._who:<{_WHO}}"
        return f"{head} {record.levelname}" if record.levelno >= logging.WARNING else head

    def _of_event(self, event: Event) -> str:
        if not isinstance(event, JobEvent):
            return line_of(event)
        facts = fields_of(event)
        columns = f"{event.words:<{_WHAT}} {facts.get('job', ''):<{_NAME}}"
        return "  ".join([columns, *_details(facts, event)]).rstrip()

    def _of_job(self, identity: str) -> str:
        return f"{identity[:_ID]} " if identity else ""


def _details(facts: dict[str, Any], event: JobEvent) -> Iterator[str]:
    if "duration" in facts:
        yield took(facts["duration"])
    if facts.get("wait", 0) >= 1:
        yield f"waited {took(facts['wait'])}"
    if "delay" in facts:
        yield f"again in {took(facts['delay'])}"
    if "exception" in facts:
        yield f"{facts['exception']}: {facts.get('message', '')}".partition("\n")[0].rstrip(": ")
    others = {key: value for key, value in facts.items() if key not in _SAID}
    others |= {"attempt": event.job.attempt} if event.job.attempt > 1 else {}
    others |= {"queue": event.job.queue} if event.job.queue != _DEFAULT else {}
    if others:
        yield pairs(others)
    yield event.job.id if event.level >= logging.WARNING else event.job.id[:_ID]


def took(seconds: float) -> str:
    """``4ms``, ``0.25s``, ``12.3s``, ``2m05s``, ``3h07m``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.2f}s" if seconds < 1 else f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02}m"


def _colour_of(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return _RED
    if record.levelno >= logging.WARNING:
        return _YELLOW
    if record.levelno < logging.INFO:
        return _FAINT
    return _GREEN if isinstance(getattr(record, "event", None), JobProcessed) else ""
