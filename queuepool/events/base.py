"""What every event is."""

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
    """The base of all; listening to it is listening to everything."""

    #: what a log line begins with, and its level
    words: ClassVar[str] = ""
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class JobEvent(Event):
    """The base of what happens to one reserved job."""

    job: JobFacts
