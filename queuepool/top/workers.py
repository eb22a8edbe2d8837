"""The table of processes: what each does, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

from queuepool.board.overview import JobRow, ProcessRow
from queuepool.top.layout import Column, Row, Style
from queuepool.top.reading import Reading
from queuepool.top.text import plain
from queuepool.top.units import NONE, count, duration, megabytes

COLUMNS = (
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
_LATE = 0.8
_STYLES = {"idle": Style.FAINT, "busy": Style.PLAIN, "dead": Style.BAD, "running": Style.FAINT}


def processes(reading: Reading) -> Sequence[ProcessRow]:
    """Workers by number, then the other processes of the pool: a small terminal has room for few."""
    shown = reading.local.overview.processes if reading.local else ()
    return sorted(shown, key=lambda process: process.role != "worker")


def row(process: ProcessRow, encoding: str) -> Row:
    """The process as a row."""
    job, share = process.job, _share_of_limit(process.job)
    about = [job.name, job.queue, str(job.attempt), job.far or NONE, job.id] if job else [NONE] * 5
    name, queue, attempt, progress, job_id = (plain(text, encoding) for text in about)
    times = [duration(job.running if job else None), NONE if share is None else f"{min(share, 9.99):.0%}"]
    memory = NONE if process.memory is None else megabytes(process.memory)
    numbers = [NONE if number is None else count(number) for number in (process.done, process.failed)]
    style = Style.WARNING if share is not None and share >= _LATE else _STYLES.get(process.state, Style.WARNING)
    cells = [process.name, str(process.pid), process.state, name, queue, attempt, *times, memory, *numbers]
    return Row([*cells, progress, job_id], style, process.name)


def _share_of_limit(job: JobRow | None) -> float | None:
    """The running time as a share of the time that the job may run; ``None`` if it may run without end."""
    if job is None or job.time_left is None or job.running + job.time_left <= 0:
        return None
    return job.running / (job.running + job.time_left)
