"""A worker in the test's own process: the real one's attempt, on any stores."""

from __future__ import annotations

import math
from collections.abc import Sequence

from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload, QueuepoolError, StoreError
from queuepool.jobs.current_job import running, set_current
from queuepool.payload.lease import Lease
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import Reservation
from queuepool.stores.factory import Stores
from queuepool.testing.attempts import Attempt, Ran
from queuepool.testing.bounds import Bounds
from queuepool.testing.registered import TestsRegistry
from queuepool.testing.surroundings import QuietInvoker, QuietSlotWriter
from queuepool.testing.witness import Witness
from queuepool.unix.signals import WorkerSignals
from queuepool.worker.attempt import Runner
from queuepool.worker.context import WorkerContext
from queuepool.worker.control_state import StoreControlState
from queuepool.worker.job_lines import JobLines
from queuepool.worker.limits import Limits


class InProcessWorker:
    """Runs jobs one at a time, and adds their attempts to ``ran``."""

    def __init__(self, stores: Stores, ran: Ran, bounds: Bounds) -> None:
        self._store = stores.queue
        self._ran = ran
        self._most = bounds.most
        self._witness = Witness()
        context = _context(stores, bounds.tries, self._witness)
        self._batch = context.slot_writer.batch
        self._settler = context.settler
        self._invoker = QuietInvoker(self._witness)
        self._runner = Runner(context, JobLines(), self._invoker)
        self._tag = self._store.join()
        self._error: BaseException | None = None
        #: seconds until the first job of the queues asked last is due, if none was ready
        self.next_due: float | None = None

    def run_next(self, queues: Sequence[str]) -> Attempt | None:
        """Run the first ready job of these queues; ``None`` if there is none.

        Raises ``StoreError``, and at once what ends a test rather than a job: Ctrl-C, or pytest's ``fail`` and
        ``skip``.
        """
        self._witness.begin()
        found = self._store.reserve(queues, self._tag, 1)
        self.next_due = found.next_due
        for _, words in found.problems:
            raise StoreError(words)
        quarantined = self._quarantined(found)
        if not found.leases:
            return quarantined
        [lease] = found.leases
        self._check_limit(lease)
        self._run(lease)
        attempt = self._witness.attempt(lease)
        self._note(attempt)
        return attempt

    def take_error(self) -> BaseException | None:
        """The first error with which a job failed for good since the last call, or which a hook raised."""
        error, self._error = self._error, None
        return error

    def leave(self) -> None:
        """Give up the tag, and with it the right to reserve."""
        self._store.retire(self._tag)
        self._invoker.close()

    def _check_limit(self, lease: Lease) -> None:
        if last := self._ran.last(self._most):
            self._settler.give_back(lease)
            raise QueuepoolError(
                f"jobs still wait after {self._most} attempt{'s'[: self._most - 1]} (most=), the last: {last}"
            )

    def _quarantined(self, found: Reservation) -> Attempt | None:
        """What the store itself has found to be no job, before any attempt."""
        attempts = [Attempt("", "", queue, 1, "quarantined", BadPayload(reason)) for queue, reason in found.quarantined]
        for attempt in attempts:
            self._note(attempt)
        return attempts[-1] if attempts else None

    def _run(self, lease: Lease) -> None:
        outer = running()
        self._batch.hold([lease], lease_end=math.inf, since=math.inf)  # it never waits for long
        self._batch.next_job()
        try:
            self._runner.run(lease)
            self._settler.delete(self._batch.done)
        finally:
            self._batch.drop()
            self._settler.emit_noted()
            set_current(outer)

    def _note(self, attempt: Attempt) -> None:
        self._ran.add(attempt)
        raised = self._witness.raised
        if raised is not None and not isinstance(raised, (Exception, SystemExit)):
            raise raised
        final = attempt.error if attempt.outcome in ("failed", "quarantined") else self._witness.hook_error
        if final is not None and self._error is None:
            final.add_note(f"the job: {attempt.name} id={attempt.id} attempt={attempt.attempt}")
            self._error = final


def _context(stores: Stores, tries: int, witness: Witness) -> WorkerContext:
    signals, settings = WorkerSignals(), stores.settings
    outage = Outage(signals, witness, announces=True, retries=False)
    return WorkerContext(
        pool=PoolSettings(name="testing", connection=settings, tries=tries, unknown_retry=0.0),
        store=stores.queue,
        registry=TestsRegistry(),
        listeners=witness,
        signals=signals,
        slot_writer=QuietSlotWriter(),
        outage=outage,
        settler=Settler(stores.queue, outage, witness, settings),
        batches=lambda: stores.batches,
        control_state=StoreControlState(stores.control, (), witness),
        limits=Limits.drawn(memory=0.0, max_jobs=0, max_time=0.0),
        take_deferred_hook=lambda: None,
        run_chores=lambda: None,
        alone=True,
    )
