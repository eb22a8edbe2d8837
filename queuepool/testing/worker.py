"""A worker in the test's own process: the real one's attempt, on any stores."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from queuepool.board.board import private_slot
from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload, QueuepoolError, StoreError, UnknownJob
from queuepool.events import Event, HookRaised, JobExceptionOccurred, JobFailed, JobParked, JobQuarantined, JobReleased
from queuepool.events.listeners import LISTENERS, Listeners
from queuepool.jobs.attempt_steps import set_step_keeper
from queuepool.jobs.current_job import running, set_current
from queuepool.jobs.laravel_cache import set_cache
from queuepool.jobs.registry import REGISTRY, Handler, Registry
from queuepool.log import JobLines
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import Reservation
from queuepool.stores.factory import Stores
from queuepool.testing.attempts import Attempt, Ran
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.attempt import Runner
from queuepool.worker.context import Limits, StoreControlState, WorkerContext
from queuepool.worker.django_support import renew_connections_outside_transactions
from queuepool.worker.invoker import Invoker, JobLoop
from queuepool.worker.slot_writer import SlotWriter
from queuepool.worker.step_keeper import WorkerSteps


class InProcessWorker:
    """Runs jobs one at a time, and adds their attempts to ``ran``."""

    def __init__(self, stores: Stores, ran: Ran, limits: RunLimits) -> None:
        self._stores, self._store = stores, stores.queue
        self._ran = ran
        self._most = limits.most
        self._listeners = OutcomeListeners()
        context = _context(stores, limits.tries, self._listeners)
        self._batch = context.slot_writer.batch
        self._settler = context.settler
        self._invoker = QuietInvoker(self._listeners)
        self._runner = Runner(context, JobLines(), self._invoker)
        self._keeper = WorkerSteps(context, lambda: stores.steps, waits=False)
        self._tag = 0
        self._error: BaseException | None = None
        #: seconds until the first job of the queues asked last is due, if none was ready
        self.next_due: float | None = None

    def run_next(self, queues: Sequence[str]) -> Attempt | None:
        """Run the first ready job of these queues; ``None`` if there is none.

        Raises ``StoreError``, and at once what ends a test rather than a job: Ctrl-C, or pytest's ``fail`` and
        ``skip``.
        """
        self._listeners.begin()
        self._tag = self._tag or self._store.join(queues=queues)
        found = self._store.reserve(queues, self._tag, 1)
        if not found.leases and self._store.limits.in_use:
            found = self._after_limits(queues, found)
        self.next_due = found.next_due
        for _, words in found.problems:
            raise StoreError(words)
        quarantined = self._quarantined(found)
        if not found.leases:
            return quarantined
        [lease] = found.leases
        self._check_limit(lease)
        self._run(lease)
        if self._listeners.is_parked:
            return self.run_next(queues)
        attempt = self._listeners.attempt(lease)
        self._note(attempt)
        return attempt

    def _after_limits(self, queues: Sequence[str], found: Reservation) -> Reservation:
        """Reserve again if a limit has a place by now; ``next_due`` includes when one may have."""
        due = self._store.limits.sweep()
        again = self._store.reserve(queues, self._tag, 1)
        soonest = min((one for one in (due, again.next_due) if one is not None), default=None)
        return again if again.leases else replace(again, next_due=soonest)

    def take_error(self) -> BaseException | None:
        """The first error with which a job failed for good since the last call, or which a hook raised."""
        error, self._error = self._error, None
        return error

    def leave(self) -> None:
        """Give up the tag, and with it the right to reserve."""
        if self._tag:
            self._store.retire(self._tag)
        self._invoker.close()

    def _check_limit(self, lease: Lease) -> None:
        if last := self._ran.last(self._most):
            self._settler.give_back(lease)
            raise QueuepoolError(
                f"jobs still wait after {self._most} attempt{'s'[: self._most - 1]} (most=), the last: {last}"
            )

    def _quarantined(self, found: Reservation) -> Attempt | None:
        """Payloads that the store itself found not to be jobs, before any attempt; returns the last one."""
        attempts = [Attempt("", "", queue, 1, "quarantined", BadPayload(reason)) for queue, reason in found.quarantined]
        for attempt in attempts:
            self._note(attempt)
        return attempts[-1] if attempts else None

    def _run(self, lease: Lease) -> None:
        outer, keeper, cache = running(), set_step_keeper(self._keeper), set_cache(lambda: self._stores.laravel_cache)
        self._batch.hold([lease], lease_end=math.inf, since=math.inf)  # it never waits for long
        self._batch.next_job()
        try:
            self._runner.run(lease)
            self._settler.delete(self._batch.done)
        finally:
            self._batch.drop()
            self._settler.emit_noted()
            set_step_keeper(keeper)
            set_cache(cache)
            set_current(outer)

    def _note(self, attempt: Attempt) -> None:
        self._ran.add(attempt)
        raised = self._listeners.raised
        if raised is not None and not isinstance(raised, (Exception, SystemExit)):
            raise raised
        final = attempt.error if attempt.outcome in ("failed", "quarantined") else self._listeners.hook_error
        if final is not None and self._error is None:
            final.add_note(f"the job: {attempt.name} id={attempt.id} attempt={attempt.attempt}")
            self._error = final


def _context(stores: Stores, tries: int, listeners: OutcomeListeners) -> WorkerContext:
    signals, settings = WorkerSignals(), stores.settings
    outage = Outage(signals, listeners, announces=True, retries=False)
    return WorkerContext(
        pool=PoolSettings(name="testing", connection=settings, tries=tries, unknown_retry=0.0),
        store=stores.queue,
        registry=TestsRegistry(),
        listeners=listeners,
        signals=signals,
        slot_writer=QuietSlotWriter(),
        outage=outage,
        settler=Settler(stores.queue, outage, listeners, settings),
        batches=lambda: stores.batches,
        control_state=StoreControlState(stores.control, (), listeners),
        limits=Limits.drawn(memory=0.0, max_jobs=0, max_time=0.0),
        take_deferred_hook=lambda: None,
        run_chores=None,
        alone=True,
    )


class TestsRegistry(Registry):
    """The jobs of ``REGISTRY``, and those that a framework registers in a pool at its boot, such as Django's tasks."""

    def find(self, name: str) -> Handler:
        try:
            return REGISTRY.find(name)
        except UnknownJob:
            for register in REGISTRY.sources:
                register()
            return REGISTRY.find(name)


class OutcomeListeners(Listeners):
    """Listeners of one worker: note the outcome of its attempt, and pass every event on to those of the process."""

    def __init__(self) -> None:
        super().__init__()
        self._events: dict[type[Event], Event] = {}

    def wants(self, kind: type[Event]) -> bool:
        return LISTENERS.wants(kind)

    def emit(self, event: Event) -> bool:
        self._events[type(event)] = event
        return LISTENERS.emit(event)

    def begin(self) -> None:
        """Another attempt begins."""
        self._events.clear()

    @property
    def is_parked(self) -> bool:
        """Whether the job did not begin, as a limit had no place for it."""
        return JobParked in self._events

    @property
    def hook_error(self) -> BaseException | None:
        """A hook of the attempt has raised this."""
        event = self._events.get(HookRaised)
        return event.error if isinstance(event, HookRaised) else None

    @property
    def raised(self) -> BaseException | None:
        """The attempt, or one of its hooks, has raised this."""
        event = self._events.get(JobExceptionOccurred)
        return event.error if isinstance(event, JobExceptionOccurred) else self.hook_error

    def attempt(self, lease: Lease) -> Attempt:
        """The outcome of the attempt with this lease."""
        try:
            job = decode(lease.receipt, lease.attempts)
            about = (job.id, job.name, lease.queue, job.attempts)
        except BadPayload:
            about = ("", "", lease.queue, 1)
        for event in self._events.values():
            if isinstance(event, JobFailed):
                return Attempt(*about, "failed", event.error)
            if isinstance(event, JobReleased):
                return Attempt(*about, "released", event.error, event.delay)
            if isinstance(event, JobQuarantined):
                return Attempt(*about, "quarantined", BadPayload(event.reason))
        return Attempt(*about, "done", self.raised)


# What a worker in a test's own process lacks: alarms, signal handlers, a title, a loop in a thread of its own.


class NoAlarm(Alarm):
    """No timer and no handler: those are the test process's own."""

    def __init__(self) -> None:
        pass

    def prepare(self) -> None: ...

    def is_intact(self) -> bool:
        return True

    def is_open(self) -> bool:
        return True

    def arm(self, seconds: float) -> None: ...

    def disarm(self) -> None: ...


class QuietSlotWriter(SlotWriter):
    """Leaves the title of the process as it is."""

    def __init__(self) -> None:
        super().__init__(private_slot(), "testing", NoAlarm(), WorkerSignals(), stall_timeout=0.0)

    def _title(self, rest: str) -> None: ...


class LoopAside(JobLoop):
    """A loop for async jobs. Where the test itself is async, it runs in another thread meanwhile.

    A thread can run one loop only, and the test's waits for its ``dispatch``.
    """

    def run(self, work: Awaitable[object]) -> object:
        if not _is_in_a_loop():
            return super().run(work)
        ended: list[BaseException | None] = []
        values: list[object] = []

        def run() -> None:
            try:
                values.append(super(LoopAside, self).run(work))
                ended.append(None)
            except BaseException as error:  # noqa: BLE001 - raised below, where the job runs
                ended.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True)
        thread.start()
        thread.join()
        if ended[0] is not None:
            raise ended[0]
        return values[0]


class QuietInvoker(Invoker):
    """Calls jobs without a soft timeout, which takes a signal handler; its loops are closed by ``close``."""

    renew_connections = staticmethod(renew_connections_outside_transactions)

    def __init__(self, listeners: Listeners) -> None:
        super().__init__(listeners, self._make_loop)
        self._made: list[LoopAside] = []

    def call_within(self, function: Callable[[], object], soft_timeout: float) -> object:
        return self.call(function)

    def close(self) -> None:
        for loop in self._made:
            loop.close()

    def _make_loop(self) -> LoopAside:
        self._made.append(LoopAside())
        return self._made[-1]


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class RunLimits(NamedTuple):
    """How often jobs may run. ``tries``: the pool's default, 0 = no limit; ``most``: attempts in all."""

    tries: int
    most: int

    def check(self) -> None:
        """Raise ``ValueError`` for what is not a count."""
        for name, value, least in (("tries", self.tries, 0), ("most", self.most, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} cannot be {value!r}: it is a whole number from {least}")
