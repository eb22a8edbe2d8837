"""A failed store beside the queue, as Laravel applications have it: the queue in Redis, ``failed_jobs`` in a database.

Two servers know no common transaction. So a record is written first and the job ended after, and a job is pushed first
and its record dropped after: whoever dies in between leaves one of the two too many, never too few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from queuepool.payload import uncounted
from queuepool.stores.base import FailedJob, FailedStore, Lease


class Records(FailedStore, Protocol):
    """A failed store that can be written to by itself."""

    def record(self, record: Mapping[str, Any]) -> str | None:
        """Keep it and give its id; ``None`` when this very record, of the same payload, is there already."""


class Jobs(Protocol):
    """The part of a queue that is needed."""

    def push(self, queue: str, payloads: Sequence[bytes], delay: float = 0.0) -> None: ...

    def delete(self, leases: Sequence[Lease]) -> list[bool]: ...


def fail(jobs: Jobs, records: Records, lease: Lease, record: Mapping[str, Any]) -> bool:
    """Record and end the job; what was not ours any more leaves no record."""
    written = records.record(record)
    ours = jobs.delete([lease])[0]
    if written and not ours:
        records.forget([written])
    return ours


class FailedElsewhere:
    """Looks after the records, and puts their jobs back to the queue where it is."""

    def __init__(self, records: Records, jobs: Jobs) -> None:
        self._records = records
        self._jobs = jobs
        self.count = records.count
        self.page = records.page
        self.get = records.get
        self.forget = records.forget
        self.older_than = records.older_than

    def retry(self, failed: FailedJob, queue: str | None = None) -> bool:
        if self._records.get(failed.id) is None:
            return False
        self._jobs.push(queue or failed.queue, [uncounted(failed.payload.encode())])
        return self._records.forget([failed.id]) == 1
