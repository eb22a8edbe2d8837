"""``next_times``: when the schedule of a job is due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import islice
from typing import Any

from queuepool.config.timetable import due_after, rule_of, timetable_of, zone
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.job_class import Job


def next_times(
    job: Callable[..., Any] | type[Job], count: int = 1, *, after: datetime | None = None, timezone: str = "UTC"
) -> list[datetime]:
    """The next ``count`` due times of a job with ``schedule``, after ``after`` (now), in that time zone.

    ``timezone``: that of ``[schedule]`` in the pool's configuration, in which ``after`` is, if it names none. Raises
    ``ValueError`` for a job without a schedule, and for a time zone that there is not.
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
