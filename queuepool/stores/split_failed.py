"""A failed store beside the queue, as Laravel applications have it: the queue in Redis, ``failed_jobs`` in a database.

Two servers know no common transaction. So a job that fails is ended in the same step that puts its record into an
outbox beside the jobs, and the record is taken from there to the failed store. A failure has an id of its own, which
its record bears: taken twice it is recorded once, and the record of an earlier failure of the same job is not taken
for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from queuepool.errors import StoreDown, StoreError
from queuepool.payload.envelope import uncounted
from queuepool.stores.set_aside import FailedJob, Outbox, PendingFailure, Records

#: failures that are looked at in one go
_BATCH = 100


class Jobs(Protocol):
    """The part of a queue that is needed."""

    def push(self, queue: str, payloads: Sequence[bytes], delay: float = 0.0) -> None: ...


class FailedElsewhere:
    """Looks after the records, and puts their jobs back to the queue where it is."""

    def __init__(self, records: Records, jobs: Jobs) -> None:
        self._records = records
        self._jobs = jobs
        self.now = records.now
        self.count = records.count
        self.page = records.page
        self.get = records.get
        self.drop = records.drop
        self.older_than = records.older_than

    def retry(self, failed: FailedJob, queue: str | None = None) -> bool:
        """Pushed first and dropped after: what dies in between leaves the job twice, never not at all."""
        current = self._records.get(failed.id)
        if current is None or current.key != failed.key:
            return False
        self._jobs.push(queue or failed.queue, [uncounted(failed.payload.encode())])
        return self._records.drop([failed.key]) == 1


class Forwarder:
    """Takes failures from the outbox to the failed store."""

    def __init__(self, outbox: Outbox, records: Records) -> None:
        self._outbox = outbox
        self._records = records
        #: why the failed store refused the last one that it refused
        self.problem = ""

    def count(self) -> int:
        """How many wait."""
        return self._outbox.count_pending()

    def forward(self) -> int:
        """Gives how many are left: those that the failed store refuses. Raises ``StoreDown``."""
        refused, self.problem = 0, ""
        while batch := self._outbox.pending(refused, _BATCH):
            refused += sum(not self._take(failure) for failure in batch)
        return refused

    def _take(self, failure: PendingFailure) -> bool:
        try:
            self._records.record(failure)
        except StoreDown:
            raise
        except StoreError as error:  # one that cannot be stored must not keep the others waiting
            self.problem = str(error)
            return False
        self._outbox.drop_pending(failure)
        return True
