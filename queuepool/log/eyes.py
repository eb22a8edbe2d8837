"""The format of a log line on a terminal, for people: short, aligned and in colour."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from queuepool.events import Event, JobEvent, JobProcessed
from queuepool.log.formats import Origin, TextFormat, fields_of, line_of, pairs

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
