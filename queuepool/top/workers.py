"""The table of processes: what each does, and for how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queuepool.top.layout import Column, Row, Style
from queuepool.top.reading import Reading
from queuepool.top.text import plain
from queuepool.top.units import NONE, count, duration, megabytes

Process = Mapping[str, Any]
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


def processes(reading: Reading) -> Sequence[Process]:
    """Workers by number, then the other processes of the pool: a small terminal has room for few."""
    return sorted(reading.facts.get("processes", ()), key=lambda process: process["role"] != "worker")


def row(process: Process, encoding: str) -> Row:
    """The process as a row."""
    job: Mapping[str, Any] = process.get("job", {})
    name = f"{process['role']} {process['number']}" if process["number"] else process["role"]
    about = [plain(str(job.get(key, NONE)), encoding) for key in ("name", "queue", "attempt")]
    times = [duration(job.get("running")), _share(job)]
    numbers = [count(process[key]) if key in process else NONE for key in ("done", "failed")]
    memory = megabytes(process["memory"]) if "memory" in process else NONE
    rest = [memory, *numbers, plain(_progress(job), encoding), plain(job.get("id", NONE), encoding)]
    return Row([name, str(process["pid"]), process["state"], *about, *times, *rest], _style(process), name)


def _share(job: Mapping[str, Any]) -> str:
    """How much of the job's time is over."""
    share = share_of_limit(job)
    return NONE if share is None else f"{min(share, 9.99):.0%}"


def share_of_limit(job: Mapping[str, Any]) -> float | None:
    """The running time as a share of the time that the job may run; ``None`` if it may run without end."""
    left = job.get("time_left")
    if left is None or job["running"] + left <= 0:
        return None
    return float(job["running"] / (job["running"] + left))


def _progress(job: Mapping[str, Any]) -> str:
    return f"{job['progress']:.0%} {job['note']}".rstrip() if "progress" in job else NONE


def _style(process: Process) -> Style:
    share = share_of_limit(process["job"]) if "job" in process else None
    if share is not None and share >= _LATE:
        return Style.WARNING
    return _STYLES.get(process["state"], Style.WARNING)
