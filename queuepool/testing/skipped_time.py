"""Time that is skipped, not waited for: a store's clock is set forward in this process. And ``next_times``."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from itertools import islice
from sqlite3 import Connection
from typing import Any

from sqlalchemy import Engine, event

from queuepool.config.timetable import due_after, rule_of, timetable_of, zone
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.job_class import Job
from queuepool.stores.contract import QueueStore

#: what SQLite's ``julianday`` is at the beginning of Unix time, in days
_UNIX, _DAY = 2440587.5, 86400.0


class SkippedTime:
    """The clock of SQLite files, ours in place of theirs."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._stores: list[Any] = []

    def take_over(self, engine: Engine, store: QueueStore) -> None:
        """Be the clock of this file: its statements get the time by a function, which a connection may replace.

        To fix the time in the statements, as ``store.clock`` does, takes the time of thirty pushes.
        """
        self._stores.append(store)

        @event.listens_for(engine, "connect")
        def replace(connection: Connection, _: object) -> None:
            connection.create_function("julianday", -1, lambda *_: _UNIX + (time.time() + self._seconds) / _DAY)

    def skip(self, seconds: float) -> None:
        """Go on as if ``seconds`` had passed."""
        self._set(self._seconds + seconds)

    def reset(self) -> None:
        """Show the real time again."""
        if self._seconds:
            self._set(0.0)

    def _set(self, seconds: float) -> None:
        self._seconds = seconds
        for store in self._stores:
            store.clock = ""  # read it again


def skip_in(store: Any, seconds: float) -> None:
    """Stop the clock of any store ``seconds`` from now, until ``store.clock`` is set to an empty text."""
    store.clock = f"{store.now() + seconds:.6f}"


def next_times(
    job: Callable[..., Any] | type[Job], count: int = 1, *, after: datetime | None = None, timezone: str = "UTC"
) -> list[datetime]:
    """The next ``count`` due times of a job with ``schedule``, after ``after`` (now), in that time zone.

    ``timezone``: that of ``[schedule]`` in the pool's configuration, in which ``after`` is, if it names none. Raises
    ``ValueError`` for a job without a schedule, and for an unknown time zone.
    """
    cron, every = rule_of(_rule_of(job))
    place = zone(timezone)
    moment = after or datetime.now(place)
    since = moment if moment.tzinfo else moment.replace(tzinfo=place)
    due = due_after(timetable_of(cron, every, timezone), since.timestamp())
    return [datetime.fromtimestamp(at, place) for at in islice(due, count)]


def _rule_of(job: object) -> str:
    options = job.options if isinstance(job, JobFunction) else getattr(job, "job_options", None)
    if options is None or options.schedule is None:
        raise ValueError(f"{getattr(job, 'name', None) or getattr(job, 'job_name', None) or repr(job)} has no schedule")
    return str(options.schedule)
