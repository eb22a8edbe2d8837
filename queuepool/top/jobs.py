"""The table of job names: how many ended and how, and how long they took."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.board.counts import Histogram, JobCounts
from queuepool.board.meters import LOSSES, RUN_BOUNDS, WAIT_BOUNDS
from queuepool.top.layout import Column, Row, Style
from queuepool.top.reading import Reading
from queuepool.top.text import plain
from queuepool.top.units import NONE, brief, count, duration

#: most names that are shown: a job may have written anything on the board
_MOST = 5000
COLUMNS = (
    Column("JOB", least=16),
    Column("QUEUE", least=6, drop=3),
    Column("DONE", is_number=True),
    Column("RELEASED", is_number=True, drop=4),
    Column("FAILED", is_number=True),
    Column("KILLED", is_number=True, drop=2),
    Column("RUN P50", is_number=True, drop=5),
    Column("RUN P95", is_number=True, drop=1),
    Column("WAIT P95", is_number=True, drop=7),
    Column("TIME TAKEN", is_number=True, drop=6),
)


class Job(NamedTuple):
    """The jobs of one name from one queue; ``recent`` has those that have ended of late."""

    queue: str
    name: str
    counts: JobCounts
    recent: JobCounts


def jobs(reading: Reading) -> list[Job]:
    """All that have ended since the pool's start, by name."""
    recent, found = reading.pace.recent or {}, sorted(reading.counts.jobs.items())[:_MOST]
    return [Job(queue, name, counts, recent.get((queue, name), JobCounts())) for (queue, name), counts in found]


def row(job: Job, encoding: str) -> Row:
    """The name as a row."""
    counts, recent = job.counts, job.recent
    killed = sum(getattr(counts, reason) for reason in LOSSES)
    names = [plain(job.name, encoding), plain(job.queue, encoding)]
    numbers = [count(number) for number in (counts.done, counts.released, counts.failed, killed)]
    run = [_quantile(recent.run, share, RUN_BOUNDS) for share in (0.5, 0.95)]
    rest = [_quantile(recent.wait, 0.95, WAIT_BOUNDS), duration(counts.run.total)]
    return Row([*names, *numbers, *run, *rest], Style.WARNING if recent.failed else Style.PLAIN, job.name)


def _quantile(times: Histogram, share: float, bounds: tuple[float, ...]) -> str:
    return brief(times.quantile(share, bounds)) if times.observations else NONE
