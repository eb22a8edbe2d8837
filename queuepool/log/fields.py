"""An event as fields with Laravel's names, and as one line of ``key=value``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from queuepool.errors import JobError
from queuepool.events import (
    BootFailed,
    Event,
    JobExceptionOccurred,
    JobFacts,
    JobFailed,
    JobProcessed,
    JobProcessing,
    JobReleased,
)
from queuepool.log.tracebacks import summary, text_of
from queuepool.payload.context import MOST_LOGGED

#: most characters of a field: a job's exception may have any size
_MAX_TEXT = 8192
#: most characters of a context, names and values
_MAX_CONTEXT = 4 * _MAX_TEXT
#: the name that stands for those that are not shown
_MORE = "…"
#: Source: WorkCommand.php, writeOutputAsJson (13.x)
_STATUS: dict[type[Event], tuple[str, str]] = {
    JobProcessing: ("starting", ""),
    JobProcessed: ("success", "deleted"),
    JobReleased: ("released_after_exception", "released"),
    JobFailed: ("failed", "failed"),
}


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
    """The lines below the event's line: why a job raised, why the modules did not import. Empty for other events."""
    if isinstance(event, BootFailed):
        return event.trace
    if isinstance(event, JobExceptionOccurred) and not isinstance(event.error, JobError):
        return text_of(event.error)
    return ""


def context_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """A job's context, ready for JSON. A value that is too long is cut; of too many or too long ones the first are
    there.
    """
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
