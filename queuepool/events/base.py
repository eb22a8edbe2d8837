"""The base classes of events."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Which job an event is about; ``attempt`` counts from 1."""

    id: str
    uuid: str
    name: str
    queue: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events; a listener for it gets every event."""

    #: the first words of the event's log line, and its level
    words: ClassVar[str] = ""
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class JobEvent(Event):
    """The base of the events of one reserved job."""

    job: JobFacts
