"""One attempt at one job: read it, run it, rule on it, have it settled."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from queuepool.current import Current, set_current
from queuepool.desk import Desk
from queuepool.errors import BadPayload, UnknownJob
from queuepool.events import HookRaised, JobExceptionOccurred, JobFacts, JobProcessed, JobProcessing, PayloadOdd
from queuepool.listeners import Listeners
from queuepool.outage import Outage
from queuepool.payload import OBJECT_JOB, Payload, decode
from queuepool.php import arguments_in
from queuepool.policies import policy_of, timeout_of
from queuepool.registry import Handler, Options, Registry, Task, bound
from queuepool.settings import PoolSettings
from queuepool.settle import Settler, facts_of
from queuepool.signing import seals_of
from queuepool.stores.base import Lease, QueueStore
from queuepool.verdict import Delete, Fail, Policy, Release, Tallies, Verdict, judge, may_start


@dataclass(frozen=True, slots=True)
class Attempt:
    """A reserved job, read; ``handler`` is ``None`` when nobody is registered under its name."""

    lease: Lease
    payload: Payload
    handler: Handler | None
    policy: Policy
    timeout: float

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)


class Attempts:
    """Runs jobs one after the other, in one process."""

    def __init__(
        self,
        pool: PoolSettings,
        store: QueueStore,
        registry: Registry,
        listeners: Listeners,
        desk: Desk,
        settler: Settler,
        outage: Outage,
    ) -> None:
        self._pool = pool
        self._store = store
        self._registry = registry
        self._listeners = listeners
        self._desk = desk
        self._settler = settler
        self._outage = outage
        self._seals = seals_of(pool.connection.signing, pool.connection.signing_keys)
        self._pid = os.getpid()
        self._loop: asyncio.Runner | None = None
        self._warned: set[tuple[str, str]] = set()

    def run(self, lease: Lease) -> Lease | None:
        """Run it; gives the lease back when it is done and only its receipt is left to be deleted."""
        attempt = self._open(lease)
        if attempt is None:
            return None
        # Asked for while it still counts as not begun, and outside of its time.
        now = self._outage.insist(self._store.now)[0] if attempt.policy.retry_until is not None else 0.0
        job = Current(attempt.payload, lease.queue)
        self._desk.begins(attempt.payload, lease.queue, attempt.policy, attempt.timeout, known=bool(attempt.handler))
        began = time.monotonic()
        error = self._perform(attempt, job, now)
        duration = time.monotonic() - began
        verdict = job.verdict or self._judge(attempt, error, now + duration)
        if isinstance(verdict, Delete):
            self._desk.succeeded()
            self._tell(attempt, error, duration)
            return lease
        self._tell(attempt, error, duration)
        self._settle(attempt, verdict, error)
        return None

    def _settle(self, attempt: Attempt, verdict: Release | Fail, error: BaseException | None) -> None:
        tally = "exceptions" if error and attempt.policy.max_exceptions is not None else ""
        ours = self._settler.settle(attempt.lease, attempt.payload, verdict, error, tally)
        self._desk.settled()
        self._settler.tell()
        if not ours:
            return
        if isinstance(verdict, Fail):
            self._desk.slot.failed += 1
            self._mourn(attempt, verdict.error)
        else:
            self._desk.slot.released += 1

    def mourn(self, lease: Lease, error: BaseException) -> None:
        """Call the ``after_failed`` of a job that failed with its worker, somewhere else."""
        attempt = self._open(lease)
        if attempt:
            self._mourn(attempt, error)

    def _open(self, lease: Lease) -> Attempt | None:
        try:
            payload = self._seals.open(lease.receipt, lease.queue) if self._seals else decode(lease.receipt)
        except BadPayload as odd:
            self._desk.ended()
            self._settler.quarantine(lease, odd.reason)
            self._desk.settled()
            self._settler.tell()
            return None
        handler = self._find(payload.name)
        options = handler.options if handler else Options()
        timeout, warning = timeout_of(payload, options, self._pool)
        attempt = Attempt(lease, payload, handler, policy_of(payload, options, self._pool), timeout)
        if payload.oddities or warning:
            self._warn(attempt, [*payload.oddities, *([warning] if warning else [])])
        return attempt

    def _find(self, name: str) -> Handler | None:
        try:
            return self._registry.find(name)
        except UnknownJob:
            return None

    def _warn(self, attempt: Attempt, oddities: list[str]) -> None:
        for oddity in oddities:
            if (attempt.payload.name, oddity) not in self._warned:
                self._warned.add((attempt.payload.name, oddity))
                self._listeners.tell(PayloadOdd(attempt.facts, oddity))

    def _perform(self, attempt: Attempt, job: Current, now: float) -> BaseException | None:
        set_current(job)
        try:
            task = self._task(attempt, now)
            if self._listeners.wants(JobProcessing):
                self._listeners.tell(JobProcessing(attempt.facts))
            self._call(task.run)
            error = None
        # Whatever a job raises, SystemExit too, ends the job and not the worker.
        except BaseException as raised:  # noqa: BLE001
            error = raised
        self._leave_if_forked()
        succeeded = not error and isinstance(job.verdict or Delete(), Delete)
        if succeeded:
            self._desk.succeeded()
        self._leave_if_broken()
        if succeeded:
            self._hook(attempt, "after_succeeded", task.after_succeeded)
        self._desk.ended()
        set_current(None)
        return error

    def _task(self, attempt: Attempt, now: float) -> Task:
        """Raises ``JobError`` when it may not or cannot begin."""
        handler = attempt.handler or self._registry.find(attempt.payload.name)
        refusal = may_start(attempt.payload.name, attempt.payload.attempts, attempt.policy, now)
        if refusal:
            raise refusal.error
        return bound(handler, _data_of(attempt.payload))

    def _call(self, function: Callable[[], object]) -> None:
        result = function()
        if result is not None and inspect.isawaitable(result):
            self._loop = self._loop or asyncio.Runner()
            self._loop.run(_awaited(result), context=contextvars.copy_context())

    def _leave_if_forked(self) -> None:
        # A job that forked and returned in both: only the worker itself may go on to settle it.
        if os.getpid() != self._pid:
            os._exit(70)

    def _leave_if_broken(self) -> None:
        # A job that closed all files: the numbers of the log and of the trace may be a connection's next. Not one more
        # line may be written; the steward settles what the board says.
        if not self._desk.is_intact():
            os._exit(70)

    def _judge(self, attempt: Attempt, error: BaseException | None, now: float) -> Verdict:
        tallies = Tallies()
        if error and attempt.policy.max_exceptions is not None:
            tallies = self._outage.insist(lambda: self._store.tallies(attempt.payload.id))[0]
        return judge(error, attempt.payload.attempts, attempt.policy, tallies, now)

    def _tell(self, attempt: Attempt, error: BaseException | None, duration: float) -> None:
        if error:
            self._listeners.tell(JobExceptionOccurred(attempt.facts, error, duration))
        elif self._listeners.wants(JobProcessed):
            self._listeners.tell(JobProcessed(attempt.facts, duration))

    def _mourn(self, attempt: Attempt, error: BaseException) -> None:
        """The job is over already: its hook may hang or raise, but cannot change that."""
        if attempt.handler is None:
            return
        self._desk.arm(attempt.timeout)
        try:
            task = bound(attempt.handler, _data_of(attempt.payload))
        except Exception:  # noqa: BLE001 - arguments that do not fit are why it failed
            task = None
        if task:
            self._hook(attempt, "after_failed", lambda: task.after_failed(error))
        self._desk.ended()

    def _hook(self, attempt: Attempt, name: str, hook: Callable[[], object]) -> None:
        try:
            self._call(hook)
        except BaseException as error:  # noqa: BLE001 - a hook is the user's code, and harms nothing
            self._listeners.tell(HookRaised(attempt.facts, name, error))
        self._leave_if_forked()


async def _awaited(result: object) -> object:
    return await result  # type: ignore[misc]


def _data_of(payload: Payload) -> object:
    """The handler's arguments; of Laravel's object jobs, the properties."""
    return arguments_in(payload.data) if payload.job == OBJECT_JOB else payload.data
