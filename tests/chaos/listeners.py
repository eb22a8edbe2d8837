"""What the pool says that it did with jobs, written into the same ledger; in workers and in the steward."""

from __future__ import annotations

from queuepool import on
from queuepool.events import JobEvent, JobFailed, JobGivenBack, JobProcessed, JobReleased, LeaseLost
from tests.chaos.book import BOOK

_WORDS = {JobProcessed: "ack", JobReleased: "release", JobFailed: "fail", JobGivenBack: "requeue", LeaseLost: "stale"}


@on(JobProcessed, JobReleased, JobFailed, JobGivenBack, LeaseLost)
def tell(event: JobEvent) -> None:
    BOOK.attempt(_WORDS[type(event)], event.job.id, event.job.attempt)
