"""``run_now`` and ``drain``: jobs run in the test's process, where they are dispatched or afterwards."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from queuepool.errors import QueuepoolError
from queuepool.jobs import diversion
from queuepool.jobs.connecting import default_queue
from queuepool.jobs.diversion import Push
from queuepool.jobs.job_options import queue_name
from queuepool.jobs.transactions import Postponed
from queuepool.stores.factory import Stores
from queuepool.stores.sql.borrowed import BorrowedQueue
from queuepool.testing.attempts import Ran, RanNow
from queuepool.testing.diverted import Recorder, diverted
from queuepool.testing.temporary import TIME, skip_in
from queuepool.testing.worker import InProcessWorker, RunLimits

_UNCOMMITTED = (
    "the job ran before the commit of the transaction that it was pushed within, and does not see its rows: push "
    "within a Session or Django's connection, or use fake(), and drain() after the commit"
)
_IN_TRANSACTION = (
    "drain: a transaction is open, and what is dispatched in it waits for its commit; Django's TestCase never commits: "
    "dispatch and drain within fake()"
)


@contextmanager
def run_now(*, raises: bool = True, tries: int = 1, most: int = 1000) -> Iterator[RanNow]:
    """Run each job in this process before its dispatch returns, as a worker does, through its payload.

    Delays and backoffs are skipped, not waited for: the store's clock is set forward. Jobs that a job dispatches run
    after it, in their order. ``tries``: those of jobs that have no such option, as the pool's setting. ``raises``: when
    all jobs have run, the dispatch raises the error of the first that failed for good, or of a hook; otherwise errors
    are in the result alone. ``most``: attempts after which ``QueuepoolError`` is raised, as for a job that dispatches
    itself. Raises ``ValueError`` for a wrong number, and ``QueuepoolError`` within another ``fake`` or ``run_now``.
    """
    limits = RunLimits(tries, most)
    limits.check()
    runner = _Runner(limits, raises=raises)
    with diverted(runner):
        try:
            yield runner.ran
            runner.settle()
        finally:
            runner.leave()


def drain(*queues: str, delayed: bool = False, raises: bool = True, tries: int = 1, most: int = 1000) -> Ran:
    """Run in this process, as a worker does, what is ready in these queues, until nothing is; ``default`` without any.

    It is the queue that ``dispatch`` uses: within ``fake`` the temporary one, else the configured one, which should be
    a test's own. ``delayed``: also what is due later, with the store's clock set forward for this process; otherwise
    such jobs stay, and so do those that a backoff delays. ``raises``, ``tries`` and ``most`` as for ``run_now``.

    Raises ``ConfigError`` for a name that no queue can have, ``ValueError`` for a wrong number, ``StoreError``, and,
    without ``fake``, ``QueuepoolError`` in a transaction of Django's that holds back what is dispatched.
    """
    names = [queue_name(name) for name in queues or ("default",)]
    limits, ran = RunLimits(tries, most), Ran()
    limits.check()
    queue = default_queue()
    if diversion.active:
        diversion.active.run()
    elif isinstance(queue.pusher.pushes, BorrowedQueue):
        raise QueuepoolError(_IN_TRANSACTION)
    stores = queue.stores
    skip = TIME.skip if diversion.active else partial(skip_in, stores.queue)
    worker = InProcessWorker(stores, ran, limits)
    try:
        while worker.run_next(names) or (delayed and worker.next_due is not None):
            if worker.next_due is not None:
                skip(worker.next_due)
    finally:
        worker.leave()
        if diversion.active is None:  # else the time stays where it is
            stores.queue.clock = ""  # type: ignore[attr-defined]
    if not diversion.active and not ran.attempts and isinstance(queue.pusher.pushes, Postponed):
        raise QueuepoolError(_IN_TRANSACTION)
    if raises and (error := worker.take_error()) is not None:
        raise error
    return ran


class _Turn(NamedTuple):
    """One job that waits, somewhere in this queue; when last asked, it was due in ``delay`` seconds."""

    worker: InProcessWorker
    queue: str
    delay: float


class _Runner(Recorder):
    """The diversion of ``run_now``. A thread that dispatches while another runs jobs leaves its job to that one."""

    def __init__(self, limits: RunLimits, *, raises: bool) -> None:
        super().__init__("run_now()")
        self.ran = RanNow(self.recorded, self.settle)
        self._limits = limits
        self._raises = raises
        self._workers: dict[Stores, InProcessWorker] = {}
        #: the ids of jobs in transactions whose commit cannot be seen
        self._uncommitted: set[str] = set()
        self._ready: deque[_Turn] = deque()
        self._delayed: deque[_Turn] = deque()
        #: the queues of the members of flows, by the worker that runs them
        self._flows: dict[InProcessWorker, set[str]] = {}
        self._is_running, self._is_making = threading.Lock(), threading.Lock()

    def pushed(self, stores: Stores, push: Push, *, is_uncommitted: bool = False) -> None:
        super().pushed(stores, push)
        worker = self._worker(stores)
        if is_uncommitted:
            self._uncommitted.update(push.ids)
        for _ in push.ids:
            self._add(_Turn(worker, push.terms.queue, push.terms.delay))

    def flow_pushed(self, stores: Stores, members: Sequence[Push]) -> None:
        super().flow_pushed(stores, members)
        self._flows.setdefault(self._worker(stores), set()).update(push.terms.queue for push in members)

    def run(self) -> None:
        self.settle()
        # Looked at again after each release: a turn may have been added before it, by a thread that then found it held.
        while (self._ready or self._delayed or self._flows) and self._is_running.acquire(blocking=False):
            try:
                self._run_all()
            finally:
                self._is_running.release()

    def leave(self) -> None:
        for worker in self._workers.values():
            worker.leave()

    def _worker(self, stores: Stores) -> InProcessWorker:
        with self._is_making:
            if stores not in self._workers:
                self._workers[stores] = InProcessWorker(stores, self.ran, self._limits)
            return self._workers[stores]

    def _add(self, turn: _Turn) -> None:
        (self._delayed if turn.delay else self._ready).append(turn)

    def _run_all(self) -> None:
        while self._ready or self._delayed or self._flows:
            if not self._ready and not self._delayed:
                self._run_members()
                continue
            if not self._ready:
                self._skip_time()
            self._take(self._ready.popleft())
            self.settle()  # a transaction of the job's is over
        errors = [error for worker in self._workers.values() if (error := worker.take_error()) is not None]
        if errors and self._raises:
            raise errors[0]

    def _run_members(self) -> None:
        """Run what flows have pushed to these queues by themselves, until nothing of it is left."""
        flows, self._flows = self._flows, {}
        for worker, queues in flows.items():
            if worker.run_next(sorted(queues)) is None:
                if worker.next_due is None:
                    continue
                TIME.skip(worker.next_due)
            self._flows.setdefault(worker, set()).update(queues)
        self.settle()

    def _take(self, turn: _Turn) -> None:
        attempt = turn.worker.run_next([turn.queue])
        if attempt is None:
            if turn.worker.next_due is not None:  # else the job was removed
                self._add(turn._replace(delay=turn.worker.next_due))
        elif attempt.delay is not None:
            self._add(turn._replace(delay=attempt.delay))
        if attempt is not None and attempt.error is not None and attempt.id in self._uncommitted:
            attempt.error.add_note(_UNCOMMITTED)

    def _skip_time(self) -> None:
        """Skip to when the first delayed job is due; only the store knows which one that is."""
        TIME.skip(min(turn.delay for turn in self._delayed))
        while self._delayed:
            self._ready.append(self._delayed.popleft())
