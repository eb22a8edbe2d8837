"""Events of alerts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from queuepool.events.base import Event


@dataclass(frozen=True, slots=True)
class AlertEvent(Event):
    """The base of the events of one alert. ``kind`` is its key in ``[alerts]``; ``since`` is aware, in UTC.

    ``value`` and ``limit`` are seconds, counts, or shares from 0 to 1, by the kind. ``detail`` is what else is known:
    of a lost pool, which jobs it ran.
    """

    kind: str
    subject: str
    value: float
    limit: float
    since: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AlertRaised(AlertEvent):
    """A limit of ``[alerts]`` is reached."""

    words: ClassVar[str] = "alert raised"
    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True)
class AlertCleared(AlertEvent):
    """The value is below four fifths of the limit again."""

    words: ClassVar[str] = "alert cleared"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class AlertUnsent(Event):
    """A notice could not be sent ``by`` ``exec`` or ``webhook``; a problem is emitted once, until a notice is sent."""

    words: ClassVar[str] = "notice of an alert not sent"
    level: ClassVar[int] = logging.ERROR

    by: str
    kind: str
    subject: str
    problem: str
