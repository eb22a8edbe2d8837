"""What lists show of a job."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from queuepool.board.shown_pools import RunningJob
from queuepool.board.status import iso
from queuepool.log.tracebacks import headline
from queuepool.search.found import FoundJob, plain
from queuepool.stores.contract import ShelfJob
from queuepool.stores.records import FailedJob


def job_row(job: FoundJob, by: RunningJob | None = None) -> dict[str, Any]:
    """A job of any state; ``by``: who runs it."""
    at = job.where.at if isinstance(job.where, ShelfJob) else None
    return {
        "id": job.id,
        "state": job.state,
        "queue": job.queue,
        "name": job.name or None,
        "attempts": job.attempts,
        "pushed": iso_of(job.pushed),
        "since": iso_of(job.since) if job.state == "failed" else by and by.job.since,
        "due": iso_of(at) if job.state == "delayed" else None,
        "lease_ends": iso_of(at) if job.state in ("reserved", "running") else None,
        "tags": list(job.tags),
        "arguments": plain(job.arguments),
        "error": job.error or None,
        "host": by and by.shown.host,
        "pool": by and by.shown.pool,
        "worker": by and by.process.number,
        "pid": by and by.process.pid,
        "time_left": by and by.job.time_left,
        "progress": by and by.job.progress,
    }


def failed_row(record: FailedJob) -> dict[str, Any]:
    """A failed job. Source: Illuminate/Queue/Console/ListFailedCommand.php (13.x) for the names."""
    return {
        "id": record.id,
        "connection": record.connection,
        "queue": record.queue,
        "class": record.name,
        "attempts": record.attempts,
        "failed_at": iso(record.failed_at),
        "exception": headline(record.exception),
    }


def iso_of(at: float | None) -> str | None:
    """A time in Unix seconds, in ISO 8601; ``None`` also for a number that is not one."""
    with suppress(ValueError, OverflowError, OSError):  # a foreign payload may hold any number
        return None if at is None else iso(at)
    return None
