"""The tables of processes, of queues and of job names: their rows, and the orders in which these can be shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from queuepool.board.counts import NO_WAITS, Histogram, JobCounts, QueueFacts
from queuepool.board.meters import LOSSES, RUN_BOUNDS, WAIT_BOUNDS
from queuepool.board.overview import JobRow, ProcessRow
from queuepool.top.layout import NONE, Column, Style, TableRow, brief, change, count, duration, megabytes, plain
from queuepool.top.reading import PoolReading

T = TypeVar("T")
#: most queues, and most names of jobs, that are shown: a job may have written anything on the board
_MOST = 5000

PROCESS_COLUMNS = (
    Column("PROCESS", drop=1),
    Column("PID", is_number=True),
    Column("STATE"),
    Column("JOB", least=16),
    Column("QUEUE", least=6, drop=4),
    Column("TRY", is_number=True, drop=7),
    Column("RUNNING", is_number=True),
    Column("LIMIT", is_number=True, drop=5),
    Column("MEMORY", is_number=True, drop=6),
    Column("DONE", is_number=True, drop=3),
    Column("FAILED", is_number=True, drop=2),
    Column("PROGRESS", least=6, drop=8, is_extra=True),
    Column("ID", drop=9, is_extra=True),
)
#: the share of its time from which a running job is pointed out
_NEAR_LIMIT = 0.8
_STYLES = {"idle": Style.FAINT, "busy": Style.PLAIN, "dead": Style.BAD, "running": Style.FAINT}


def processes(reading: PoolReading) -> Sequence[ProcessRow]:
    """Workers by number, then the other processes of the pool: a small terminal has room for few."""
    shown = reading.local.overview.processes if reading.local else ()
    return sorted(shown, key=lambda process: process.role != "worker")


def process_row(process: ProcessRow, encoding: str) -> TableRow:
    """The process as a row."""
    job, share = process.job, _share_of_limit(process.job)
    about = [job.name, job.queue, str(job.attempt), job.far or NONE, job.id] if job else [NONE] * 5
    name, queue, attempt, progress, job_id = (plain(text, encoding) for text in about)
    times = [duration(job.running if job else None), NONE if share is None else f"{min(share, 9.99):.0%}"]
    memory = NONE if process.memory is None else megabytes(process.memory)
    numbers = [NONE if number is None else count(number) for number in (process.done, process.failed)]
    style = Style.WARNING if share is not None and share >= _NEAR_LIMIT else _STYLES.get(process.state, Style.WARNING)
    cells = [process.name, str(process.pid), process.state, name, queue, attempt, *times, memory, *numbers]
    return TableRow([*cells, progress, job_id], style, process.name)


def _share_of_limit(job: JobRow | None) -> float | None:
    """The running time as a share of the time that the job may run; ``None`` if it may run without end."""
    if job is None or job.time_left is None or job.running + job.time_left <= 0:
        return None
    return job.running / (job.running + job.time_left)


#: seconds for which a first delayed job may be due, and seconds after which the measured figures are old
_OVERDUE, _OLD = 5.0, 30.0
QUEUE_COLUMNS = (
    Column("QUEUE", least=8),
    Column("READY", is_number=True, is_extra=True),
    Column("DELAYED", is_number=True, is_extra=True, drop=2),
    Column("RESERVED", is_number=True, is_extra=True, drop=3),
    Column("OLDEST", is_number=True, is_extra=True),
    Column("CHANGE", is_number=True, is_extra=True, drop=1),
    Column("EMPTY IN", is_number=True, is_extra=True, drop=4),
    Column("WAIT P95", is_number=True, is_extra=True, drop=5),
    Column("QUARANTINED", is_number=True, is_extra=True, drop=6),
    Column("", drop=1, is_extra=True),
)


class QueueRow(NamedTuple):
    """One queue. ``growth`` is in ready jobs a second, ``None`` if unknown; ``wait`` is of recent first attempts."""

    name: str
    facts: QueueFacts
    is_paused: bool
    growth: float | None
    wait: Histogram
    age: float


def queues(reading: PoolReading) -> list[QueueRow]:
    """The pool's queues, highest priority first, and all others that its steward has measured."""
    paused = reading.local.overview.paused if reading.local else ()
    served = reading.local.about.queues if reading.local and reading.local.about else ()
    names = dict.fromkeys([*served, *reading.counts.queues, *paused])
    waits = reading.pace.waits()
    return [_queue(reading, name, name in paused, waits.get(name, NO_WAITS)) for name in list(names)[:_MOST]]


def _queue(reading: PoolReading, name: str, is_paused: bool, wait: Histogram) -> QueueRow:
    facts = reading.counts.queues.get(name, QueueFacts())
    growth = (reading.pace.growth or {}).get(name)
    age = max(reading.seen_at - facts.measured_at, 0.0)
    return QueueRow(name, facts, is_paused or facts.paused, growth, wait, age)


def queue_row(queue: QueueRow, encoding: str) -> TableRow:
    """The queue as a row; without figures where none were measured."""
    facts, name = queue.facts, plain(queue.name, encoding)
    remark, style = _remark(queue)
    if not facts.measured_at:
        return TableRow([name, *[NONE] * 8, remark], style, queue.name)
    sizes = [f"{count(facts.ready)}{'+' if facts.is_at_least else ''}", count(facts.delayed), count(facts.reserved)]
    wait = brief(queue.wait.quantile(0.95, WAIT_BOUNDS)) if queue.wait.observations else NONE
    speed = [change(queue.growth), _empty_in(queue), wait, count(facts.quarantined)]
    return TableRow([name, *sizes, duration(facts.oldest), *speed, remark], style, queue.name)


def _empty_in(queue: QueueRow) -> str:
    """When nothing is ready any more, if it goes on like this."""
    if not queue.facts.ready or queue.growth is None or queue.growth > -0.05:
        return NONE
    return duration(queue.facts.ready / -queue.growth)


def _remark(queue: QueueRow) -> tuple[str, Style]:
    parked = f"{count(queue.facts.parked)} parked" if queue.facts.parked else ""
    if queue.is_paused:
        return ", ".join(filter(None, ["paused", parked])), Style.WARNING
    if not queue.facts.measured_at:
        return "not measured", Style.FAINT
    if queue.age > _OLD:
        return f"measured {duration(queue.age)} ago", Style.WARNING
    if queue.facts.overdue > _OVERDUE:
        return f"delayed jobs late: {duration(queue.facts.overdue)}", Style.BAD
    return parked, Style.PLAIN if queue.facts.ready or queue.facts.reserved else Style.FAINT


JOB_COLUMNS = (
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


class NameRow(NamedTuple):
    """The jobs of one name from one queue; ``recent`` has those that ended in the last minute."""

    queue: str
    name: str
    counts: JobCounts
    recent: JobCounts


def jobs(reading: PoolReading) -> list[NameRow]:
    """All jobs that have ended since the pool's start, by name."""
    recent, found = reading.pace.recent or {}, sorted(reading.counts.jobs.items())[:_MOST]
    return [NameRow(queue, name, counts, recent.get((queue, name), JobCounts())) for (queue, name), counts in found]


def job_row(job: NameRow, encoding: str) -> TableRow:
    """The name as a row."""
    counts, recent = job.counts, job.recent
    killed = sum(getattr(counts, reason) for reason in LOSSES)
    names = [plain(job.name, encoding), plain(job.queue, encoding)]
    numbers = [count(number) for number in (counts.done, counts.released, counts.failed, killed)]
    run = [_quantile(recent.run, share, RUN_BOUNDS) for share in (0.5, 0.95)]
    rest = [_quantile(recent.wait, 0.95, WAIT_BOUNDS), duration(counts.run.total)]
    return TableRow([*names, *numbers, *run, *rest], Style.WARNING if recent.failed else Style.PLAIN, job.name)


def _quantile(times: Histogram, share: float, bounds: tuple[float, ...]) -> str:
    return brief(times.quantile(share, bounds)) if times.observations else NONE


class Page(Enum):
    """What the large table shows."""

    WORKERS = "workers"
    QUEUES = "queues"
    JOBS = "jobs"


class Order(NamedTuple):
    """``key`` is the value to sort by, the largest first; ``None``: as they come."""

    name: str
    key: Callable[[Any], Any] | None = None


def _running(process: ProcessRow) -> float:
    return process.job.running if process.job else -1.0


def _number(number: int | None) -> int:
    return -1 if number is None else number


class PageTable(NamedTuple):
    """The table of a page: its items in a reading, an item as a row, and the orders to choose from."""

    items: Callable[[PoolReading], Sequence[Any]]
    row: Callable[[Any, str], TableRow]
    columns: Sequence[Column]
    orders: Sequence[Order]


PAGES: Mapping[Page, PageTable] = {
    Page.WORKERS: PageTable(
        processes,
        process_row,
        PROCESS_COLUMNS,
        (
            Order("number"),
            Order("running", _running),
            Order("memory", lambda process: _number(process.memory)),
            Order("done", lambda process: _number(process.done)),
            Order("failed", lambda process: _number(process.failed)),
        ),
    ),
    Page.QUEUES: PageTable(
        queues,
        queue_row,
        QUEUE_COLUMNS,
        (
            Order("ready", lambda queue: (queue.facts.ready, queue.facts.oldest)),
            Order("oldest", lambda queue: (queue.facts.oldest, queue.facts.ready)),
            Order("priority"),
        ),
    ),
    Page.JOBS: PageTable(
        jobs,
        job_row,
        JOB_COLUMNS,
        (
            Order("time taken", lambda job: job.counts.run.total),
            Order("ended", lambda job: job.counts.ended),
            Order("failed", lambda job: job.counts.failed),
            Order("name"),
        ),
    ),
}


def ordered(page: Page, number: int, is_reversed: bool, items: Iterable[T]) -> list[T]:
    """The items of a page in its ``number``-th order."""
    key = PAGES[page].orders[number].key
    found = list(items) if key is None else sorted(items, key=key, reverse=True)
    return found[::-1] if is_reversed else found
