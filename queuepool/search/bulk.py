"""Does one thing with all jobs that were found, in batches: it may end between any two, and the count is true."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from queuepool.payload.envelope import wanted_again
from queuepool.payload.lease import Lock
from queuepool.payload.members import member_in_text
from queuepool.payload.signing import signer_of
from queuepool.search.found import FoundJob
from queuepool.search.look import Look, QueueLook
from queuepool.settlement.held_locks import HeldLocks
from queuepool.settlement.states import moved, retried
from queuepool.stores.contract import MovedJob, ShelfJob
from queuepool.stores.factory import Stores
from queuepool.stores.pace import StorePace
from queuepool.stores.records import FailedJob, Retrying, Returned
from queuepool.stores.steps import in_steps
from queuepool.unix.signals import interrupts_held_back

#: jobs and bytes of one batch, and seconds after which it is carried out anyway: in Redis jobs move on in their list
BATCH, _BYTES, _LONGEST = 500, 16 * 1024 * 1024, 1.0
#: what is done with a batch: the result for each job, as soon as it is known
Act = Callable[[Sequence[FoundJob]], Iterable[Returned]]


@dataclass
class Done:
    """What has been done so far."""

    results: Counter[Returned] = field(default_factory=Counter)
    #: of how many jobs of each queue
    queues: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """Of how many jobs it was done."""
        return self.results[Returned.DONE]

    def add(self, jobs: Sequence[FoundJob], results: Iterable[Returned]) -> None:
        """Count a batch; of one that fails, the results before that."""
        for job, result in zip(jobs, results, strict=True):
            self.results[result] += 1
            if result:
                self.queues[job.queue] += 1


class Bulk:
    """Acts on jobs in batches; ``tell`` is called after each.

    A store that goes away leaves the batch under way unknown: each of its jobs is in one place all the same.
    """

    def __init__(self, tell: Callable[[Done], object]) -> None:
        self._tell = tell
        self.done = Done()

    def run(self, pages: Iterable[Sequence[FoundJob]], act: Act) -> None:
        """Act on all of them. Raises ``StoreError``, and ``KeyboardInterrupt`` between two batches."""
        found: Sequence[FoundJob] = ()
        since = 0.0
        for page in pages:
            since = since if found else time.monotonic()
            batches = [*in_steps([*found, *page], BATCH, _BYTES, lambda job: len(job.raw))]
            is_due = time.monotonic() - since > _LONGEST
            found = batches.pop() if batches and not is_due else []
            for batch in batches:
                self._batch(batch, act)
        if found:
            self._batch(found, act)

    def _batch(self, jobs: Sequence[FoundJob], act: Act) -> None:
        with interrupts_held_back():
            self.done.add(jobs, act(jobs))
        self._tell(self.done)


class OfFailedJobs:
    """What can be done with failed jobs; ``pace`` is asked before each request of a batch."""

    def __init__(self, stores: Stores, locks: HeldLocks, pace: StorePace) -> None:
        self._stores = stores
        self._locks = locks
        self._pace = pace
        self._signer = signer_of(stores.settings.signing, stores.settings.signing_keys)

    def retry(self, jobs: Sequence[FoundJob], queue: str | None = None, *, alone: bool = False) -> list[Returned]:
        """As ``put_back``."""
        return self.put_back([_record(job) for job in jobs], queue, alone=alone)

    def forget(self, jobs: Sequence[FoundJob]) -> list[Returned]:
        """Drop them, with the unique locks that they still hold."""
        keys = [_record(job).key for job in jobs]
        answers = self._pace(lambda: self._stores.failed.drop(keys, self._locks.set_aside))
        return [Returned(int(answer)) for answer in answers]

    def put_back(
        self, records: Sequence[FailedJob], queue: str | None = None, *, alone: bool = False
    ) -> list[Returned]:
        """Put them back on their queues, or on this one, with all their tries.

        ``alone``: also those whose flow is not kept any more. Those that may have a unique lock go one by one, the
        others in few steps.
        """
        states = retried(records, self._stores.values.tracked, queue)
        again = [self._again(one, queue) for one in records]
        jobs = [Retrying(record, state) for record, state in zip(again, states, strict=True)]
        left = set[int]() if alone else self._without_flow(records)
        free = [number for number, record in enumerate(again) if not (number in left or self._may_be_locked(record))]
        results = self._pace(lambda: self._stores.failed.retry_all([jobs[number] for number in free], queue))
        answers = dict(zip(free, results, strict=True)) | dict.fromkeys(left, Returned.ALONE)
        return [
            answers[number] if number in answers else self._under_its_lock(job, queue)
            for number, job in enumerate(jobs)
        ]

    def _without_flow(self, records: Sequence[FailedJob]) -> set[int]:
        """The places of those that were members of flows which are not kept any more."""
        members = ((number, member_in_text(record.payload)) for number, record in enumerate(records))
        flows = {number: member.flow for number, member in members if member}
        standing = self._stores.flows.standing
        gone = {flow for flow in {*flows.values()} if self._pace(partial(standing, flow)) is None}
        return {number for number, flow in flows.items() if flow in gone}

    def _again(self, record: FailedJob, queue: str | None) -> FailedJob:
        payload = wanted_again(self._payload_on(queue, record))
        return record if payload is record.payload else replace(record, payload=payload)

    def _payload_on(self, queue: str | None, record: FailedJob) -> str:
        if queue is None or self._signer is None:
            return record.payload
        return self._signer.moved(record.payload.encode("utf-8", "replace"), record.queue, queue).decode()

    def _may_be_locked(self, record: FailedJob) -> bool:
        return self._locks.waiting.may_hold(record.payload.encode("utf-8", "replace"))

    def _under_its_lock(self, job: Retrying, queue: str | None) -> Returned:
        def back(lock: Lock | None) -> Returned:
            return self._stores.failed.retry(job.failed, queue, job.state, lock)

        return self._pace(lambda: self._locks.put_back(self._stores, job.failed.payload.encode(), back, ended=True))


class OfWaitingJobs:
    """What can be done with the ready and delayed jobs of one queue, which ``found`` has found."""

    def __init__(self, look: Look, locks: HeldLocks, queue: str, found: QueueLook) -> None:
        stores = self._stores = look.stores
        self._pace = look.pace
        self._locks = locks
        self._queue = queue
        self._found = found
        self._signer = signer_of(stores.settings.signing, stores.settings.signing_keys)

    def drop(self, jobs: Sequence[FoundJob]) -> Iterator[Returned]:
        """Drop them, with their unique locks."""
        return self._taken(jobs, lambda these: self._stores.queue.drop(self._queue, these, self._locks.waiting))

    def move_to(self, target: str, jobs: Sequence[FoundJob]) -> Iterator[Returned]:
        """Move them to another queue of the connection, where they keep their locks, attempts and due times."""

        def move(these: Sequence[ShelfJob]) -> Sequence[bool]:
            return self._stores.queue.move(self._queue, [self._on(target, job) for job in these], target)

        return self._taken(jobs, move)

    def run_now(self, jobs: Sequence[FoundJob]) -> Iterator[Returned]:
        """Make delayed ones due now; they keep their locks and attempts."""

        def hasten(these: Sequence[ShelfJob]) -> Sequence[bool]:
            due = [MovedJob(job, job.payload, moved(job.payload, job.attempts, self._queue, None)) for job in these]
            return self._stores.queue.move(self._queue, due, self._queue)

        return self._taken(jobs, hasten)

    def _on(self, queue: str, job: ShelfJob) -> MovedJob:
        payload = self._signer.moved(job.payload, self._queue, queue) if self._signer else job.payload
        return MovedJob(job, payload, moved(job.payload, job.attempts, queue, job.at))

    def _taken(
        self, jobs: Sequence[FoundJob], take: Callable[[Sequence[ShelfJob]], Sequence[bool]]
    ) -> Iterator[Returned]:
        """In the store's own steps: those that are done count if a later one fails."""
        for step in self._stores.queue.steps([*map(_shelf_job, jobs)]):
            answers = self._pace(partial(take, step))
            self._found.taken(job for job, is_gone in zip(step, answers, strict=True) if is_gone)
            yield from (Returned(int(answer)) for answer in answers)


def _record(job: FoundJob) -> FailedJob:
    assert isinstance(job.where, FailedJob)
    return job.where


def _shelf_job(job: FoundJob) -> ShelfJob:
    assert isinstance(job.where, ShelfJob)
    return job.where
