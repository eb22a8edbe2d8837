"""Events of alerts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from queuepool.events.base import Event


@dataclass(frozen=True, slots=True)
class AlertRaised(Event):
    """A limit of ``[alerts]`` is reached. ``kind`` is its key there; ``since`` is aware, in UTC.

    ``value`` and ``limit`` are seconds, counts, or shares from 0 to 1, by the kind.
    """

    words: ClassVar[str] = "alert raised"
    level: ClassVar[int] = logging.WARNING

    kind: str
    subject: str
    value: float
    limit: float
    since: datetime


@dataclass(frozen=True, slots=True)
class AlertCleared(Event):
    """The value is below four fifths of the limit again; the fields are those of ``AlertRaised``."""

    words: ClassVar[str] = "alert cleared"
    level: ClassVar[int] = logging.INFO

    kind: str
    subject: str
    value: float
    limit: float
    since: datetime


@dataclass(frozen=True, slots=True)
class AlertUnsent(Event):
    """A notice could not be sent ``by`` ``exec`` or ``webhook``; a problem is emitted once, until a notice is sent."""

    words: ClassVar[str] = "notice of an alert not sent"
    level: ClassVar[int] = logging.ERROR

    by: str
    kind: str
    subject: str
    problem: str
