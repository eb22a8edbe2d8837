"""The base classes of events."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Which job an event is about; ``attempt`` counts from 1."""

    id: str
    uuid: str
    name: str
    queue: str
    attempt: int
    #: Laravel's context, without what is hidden; ``None`` if there is none
    context: Mapping[str, Any] | None = field(default=None, compare=False)
    #: at most 32, each of at most 128 characters
    tags: tuple[str, ...] = field(default=(), compare=False)


class KilledAttempt(NamedTuple):
    """What a trace needs of an attempt that ended with its worker. Times in Unix seconds, by the host's clock.

    An attempt that ran beside others may be ended alone: its worker lives on, and its hooks have run.
    """

    #: when it began; ``None`` = unknown
    began: float | None = None
    #: when the steward found its worker dead
    ended: float = 0.0
    #: as ``current().extra``, but not verified: the steward reads no signatures
    extra: Mapping[str, Any] = MappingProxyType({})
    #: whether it was ended alone, by its worker
    is_cancelled: bool = False


UNKNOWN = KilledAttempt()


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
