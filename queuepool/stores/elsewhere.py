"""What is on another server than the queue, as often in Laravel applications: failed jobs, and unique locks.

Often the queue is in Redis, and ``failed_jobs`` in a database.

Two servers share no transaction. So one step removes a failed job and puts its record into an outbox beside the jobs;
the record is then forwarded to the failed store. Each failure has a unique id, which its record carries: forwarded
twice, it is recorded once, and an earlier failure of the same job is not mistaken for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.payload.envelope import uncounted
from queuepool.payload.lease import Lock, StateRecord, Unlock
from queuepool.payload.members import NewFlow, NewMember, member_in_text
from queuepool.stores.contract import NewJob, PushStore, QueueStore
from queuepool.stores.locks import NO_LOCKS, Finder, Locks
from queuepool.stores.records import FailedJob, PendingFailure, RecordKey, Records, Retrying, Returned
from queuepool.stores.sql.encoding import ASCII, storable, storable_json

#: failures that are read at once
_BATCH = 100
#: characters of a name, and of a text, that even Laravel's oldest tables hold
_MOST_OF_NAME, _MOST_OF_TEXT = 191, 30_000


class FailedElsewhere:
    """The failed store on another server; retries return jobs to the queue on its own server.

    ``beside``: what is set aside there, with the jobs.
    """

    def __init__(self, records: Records, jobs: QueueStore, beside: Records) -> None:
        self._records = records
        self._jobs = jobs
        self._beside = beside
        self.now = records.now
        self.count = records.count
        self.page = records.page
        self.get = records.get
        self.older_than = records.older_than

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        """Push the job, then drop its record: a crash in between keeps both, but never loses the job.

        The record of a unique job then cannot be retried as long as the pushed job holds the lock.
        """
        current = self._records.get(failed.id)
        if current is None or current.key != failed.key:
            return Returned.GONE
        if not self._put_back(Retrying(failed, state, lock), queue):
            return Returned.HELD
        return Returned.DONE if self._records.drop([failed.key]) == [True] else Returned.GONE

    def _put_back(self, job: Retrying, queue: str | None) -> bool:
        """``False`` if another job holds its lock."""
        if member := member_in_text(job.failed.payload):
            return bool(self._beside.resume(job, member, queue))
        fresh = NewJob(uncounted(job.failed.payload.encode()), job.state)
        return self._jobs.push(queue or job.failed.queue, [fresh], lock=job.lock)

    def retry_all(self, jobs: Sequence[Retrying], queue: str | None = None) -> list[Returned]:
        """As the contract says, one by one: a crash doubles one job at most."""
        return [self.retry(failed, queue, state, lock) for failed, state, lock in jobs]

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> list[bool]:
        """As the contract says; the locks, on the other server, are released first."""
        for payload in self._records.holding(keys, finder):
            self._jobs.unlock(finder.locks_of(payload))
        return self._records.drop(keys)


class Forwarder:
    """Moves failures from the outbox to the failed store."""

    def __init__(self, outbox: Records, records: Records) -> None:
        self._outbox = outbox
        self._records = records
        #: why the failed store last refused a failure
        self.problem = ""

    def count(self) -> int:
        """How many failures wait."""
        return self._outbox.count_pending()

    def forward(self) -> int:
        """Forward all; returns how many remain because the failed store refuses them. Raises ``StoreDown``."""
        refused, self.problem = 0, ""
        while batch := self._outbox.pending(refused, _BATCH):
            refused += sum(not self._record(failure) for failure in batch)
        return refused

    def _record(self, failure: PendingFailure) -> bool:
        if not failure.record:
            self.problem = f"the record of failure {failure.id} is damaged"
            return False
        try:
            self._record_somehow(failure)
        except StoreDown:
            raise
        except StoreError as error:  # one that cannot be stored must not block the others
            self.problem = str(error)
            return False
        self._outbox.drop_pending(failure)
        return True

    def _record_somehow(self, failure: PendingFailure) -> None:
        """Record it as it is or, if that is refused, in a plainer form."""
        try:
            self._records.record(failure)
        except StoreDown:
            raise
        except StoreError:
            self._records.record(replace(failure, record=plainer(failure.record)))


def plainer(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record in ASCII, with its error text shortened; its payload stays equivalent, as it may be retried."""
    names = {name: storable(str(record[name]), ASCII)[:_MOST_OF_NAME] for name in ("id", "connection", "queue")}
    exception = storable(record["exception"], ASCII)
    if len(exception) > _MOST_OF_TEXT:
        exception = f"{exception[: _MOST_OF_TEXT // 2]}\n[...]\n{exception[-_MOST_OF_TEXT // 2 :]}"
    return {**record, **names, "exception": exception, "payload": storable_json(record["payload"], ASCII)}


# Unique locks apart from the queue, as in Laravel applications: the jobs in a database, the cache in Redis.


class LocksElsewhere:
    """Pushes to ``pushes``, with Laravel's ``locks`` in another store.

    Such a lock is taken first; no transaction covers both, so a crash in between leaves it held until it expires, as in
    Laravel.
    """

    def __init__(self, pushes: PushStore, locks: Locks) -> None:
        self._pushes = pushes
        self._locks = locks

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As the contract says; its members take no locks."""
        self._pushes.write_flow(flow, members)

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """As the contract says."""
        if lock is None or not lock.is_elsewhere:
            return self._pushes.push(queue, jobs, delay, lock)
        if not self._locks.take(lock):
            return False
        try:
            return self._pushes.push(queue, jobs, delay)
        except StoreError as error:
            # After an unanswered push the job may be stored. A producer may lack the right to release.
            if isinstance(error, StoreDenied) or not isinstance(error, StoreDown):
                with suppress(StoreError):
                    self._locks.release([Unlock(lock.name, lock.owner)])
            raise
