"""What lists show of a job."""

from __future__ import annotations

from typing import Any

from queuepool.board.shown_pools import RunningJob
from queuepool.board.status import iso
from queuepool.log.tracebacks import headline
from queuepool.operating.attempts import facts_of, moment
from queuepool.search.ended import EndedAttempt
from queuepool.search.found import FoundJob, plain
from queuepool.stores.contract import ShelfJob
from queuepool.stores.records import FailedJob

#: what only an attempt that has ended has, besides what jobs have
_OF_AN_ATTEMPT = "outcome", "then", "began", "seconds", "generation", "pool_since", "lease_lost"


def job_row(job: FoundJob, by: RunningJob | None = None) -> dict[str, Any]:
    """A job of any state; ``by``: who runs it."""
    at = job.where.at if isinstance(job.where, ShelfJob) else None
    ended = facts_of(job.where) if isinstance(job.where, EndedAttempt) else {}
    return {
        "id": job.id,
        "state": job.state,
        "queue": job.queue,
        "name": job.name or None,
        "attempts": job.attempts,
        "pushed": moment(job.pushed),
        "since": moment(job.since) if job.state in ("failed", "done") else by and by.job.since,
        "due": moment(at) if job.state == "delayed" else None,
        "lease_ends": moment(at) if job.state in ("reserved", "running") else None,
        "tags": list(job.tags),
        "arguments": plain(job.arguments),
        "error": job.error or None,
        "host": by.shown.host if by else ended.get("host"),
        "pool": by.shown.pool if by else ended.get("pool"),
        "worker": by.process.number if by else ended.get("worker"),
        "pid": by.process.pid if by else ended.get("pid"),
        "time_left": by and by.job.time_left,
        "progress": by and by.job.progress,
        **{key: ended.get(key) for key in _OF_AN_ATTEMPT},
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
