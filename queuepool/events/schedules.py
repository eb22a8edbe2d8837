"""Events of schedules."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from queuepool.events.base import Event


@dataclass(frozen=True, slots=True)
class SchedulePushed(Event):
    """A schedule's job ``id`` was pushed for the time ``due``, ``late`` seconds after it."""

    words: ClassVar[str] = "schedule pushed"
    level: ClassVar[int] = logging.INFO

    schedule: str
    job: str
    queue: str
    id: str
    due: datetime
    late: float


@dataclass(frozen=True, slots=True)
class ScheduleMissed(Event):
    """The due times of a schedule from ``first`` to ``last`` stay without a job of their own.

    ``reason``: ``late`` (nothing could push in time; a later time may have been made good instead) or ``overlap`` (its
    last job is still queued or runs).
    """

    words: ClassVar[str] = "schedule missed"
    level: ClassVar[int] = logging.WARNING

    schedule: str
    first: datetime
    last: datetime
    reason: str
