"""Prepare a reserved job: read its payload, look up how to run it, and bind its handler to the arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from queuepool.errors import BadArguments, BadPayload, JobError, StoreError
from queuepool.events import JobSkipped, PayloadOdd
from queuepool.jobs import at_import
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Options
from queuepool.jobs.limits import Concurrency
from queuepool.jobs.registry import Handler, Task, arguments_for, bound
from queuepool.payload.command import ObjectCommand
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.members import FLOW, member_in
from queuepool.payload.options import late_by
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import names_of
from queuepool.payload.wrappers import Claim
from queuepool.settlement.facts import facts_of
from queuepool.settlement.settler import DEADLY, Settler
from queuepool.settlement.states import result_of
from queuepool.settlement.verdict import Locks, Run, may_be_newer, may_start
from queuepool.worker.context import WorkerContext
from queuepool.worker.plan import Plan, Plans

#: the number of attempts anywhere in a payload
_ATTEMPTS = re.compile(rb'"attempts"\s*+:\s*+"?+0*+(\d++)')
#: most arguments of a job that are tried as the id of its lock, and most characters of one
_MOST, _LONGEST = 10, 100


class Preparer:
    """Prepares one worker's jobs. ``step_outside`` is called before an event is emitted."""

    def __init__(self, context: WorkerContext, step_outside: Callable[[], object]) -> None:
        connection = context.pool.connection
        self._signer = signer_of(connection.signing, connection.signing_keys)
        self._plans = Plans(context.pool, context.registry)
        self._endings = context.settler.endings
        self._oddities = Oddities(context, step_outside)

    def prepare(self, lease: Lease) -> tuple[Payload, Plan]:
        """Read the payload and find its plan. Raises ``BadPayload``. Oddities are reported once per name of a job."""
        signer, raw, attempts = self._signer, lease.receipt, lease.attempts
        payload = signer.verify(raw, lease.queue, attempts) if signer else decode(raw, attempts)
        plan = self._plans.of(payload)
        claim = self._endings.claim(payload) if plan.is_object_job else None
        if plan.handler and (plan.is_unique or (claim and claim.until_start)):
            plan = self._unique(payload, plan, plan.handler.options, claim)
        if FLOW in payload.fields and (member := member_in(payload.fields)):
            plan = self._plans.in_flow(plan, member)
        self._oddities.report(payload, lease.queue, plan, claim)
        return payload, plan

    def _unique(self, payload: Payload, plan: Plan, options: Options, claim: Claim | None) -> Plan:
        """The plan with what is known of the job's unique lock, which the steward learns from its policy."""
        try:
            given = self._given(payload, options)
        except Exception as error:  # noqa: BLE001 - the application's function; the job itself can still run
            why = f"its unique_id raised {error!r}: its lock, if it has one, stays held"
            return plan._replace(warning=why)
        if options.unique_until == "start" or (claim and claim.until_start):
            held = self._endings.held_locks(payload, given)
            # On later attempts only by owner: another job may hold the lock by now.
            return plan.with_locks((), tuple(lock for lock in held if lock.owner or payload.attempts <= 1))
        return plan.with_locks(given)

    def _given(self, payload: Payload, options: Options) -> Locks:
        """The lock's possible names by the handler's ``unique_id``; ``None`` if the payload names it itself."""
        if not options.unique_id or self._endings.named_locks(payload):
            return None
        args, kwargs = arguments_for(options.unique_id, self._endings.commands.data_of(payload))
        identity = str(options.unique_id(*args, **kwargs))
        identity.encode()  # raises for a lone surrogate, with which no store could look for the lock or end the job
        return names_of(payload.name, payload.options.display_name, identity)


class LonePreparer:
    """A lone worker's ``Preparer``: it quarantines payloads that kill their readers, as the steward does in a pool.

    No steward sees a lone worker die, but a job that comes a second time may mean that. So the store counts such a
    payload, by its bytes, before it is read, and forgets the count afterwards. A first attempt costs nothing.
    """

    def __init__(self, preparer: Preparer, settler: Settler) -> None:
        self._preparer = preparer
        self._settler = settler

    def prepare(self, lease: Lease) -> tuple[Payload, Plan]:
        """Like ``Preparer.prepare``; also raises ``BadPayload`` for a payload that has killed its readers."""
        if not _has_come_before(lease):
            return self._preparer.prepare(lease)
        if self._settler.accuse(lease):
            raise BadPayload(DEADLY)
        try:
            prepared = self._preparer.prepare(lease)
        except BadPayload:
            self._settler.acquit(lease)
            raise
        self._settler.acquit(lease)
        return prepared


class QueueLimits:
    """A ``Preparer`` for pools in which some queues have limits of their own."""

    def __init__(self, preparer: Preparer | LonePreparer, limits: Iterable[tuple[str, int]]) -> None:
        self._preparer = preparer
        self._limits = {queue: Concurrency(f"queue:{queue}", number) for queue, number in limits}

    def prepare(self, lease: Lease) -> tuple[Payload, Plan]:
        """As ``Preparer.prepare``."""
        payload, plan = self._preparer.prepare(lease)
        limit = self._limits.get(lease.queue)
        return payload, plan.limited_by(limit) if limit else plan


def preparer_of(context: WorkerContext, step_outside: Callable[[], object]) -> Preparer | LonePreparer | QueueLimits:
    """The ``Preparer`` of this worker."""
    preparer = Preparer(context, step_outside)
    known = LonePreparer(preparer, context.settler) if context.alone else preparer
    return QueueLimits(known, context.pool.limits) if context.pool.limits else known


def _has_come_before(lease: Lease) -> bool:
    """Whether this may not be the first attempt, without parsing the payload; errs on the side of yes."""
    if lease.attempts is not None:
        return lease.attempts > 1
    return any(attempts != b"1" for attempts in _ATTEMPTS.findall(lease.receipt))


class Oddities:
    """Reports what is odd in the payloads of one worker's jobs, and what of them is lost.

    Each kind is reported once per name of a job. ``step_outside`` is called before an event is emitted.
    """

    def __init__(self, context: WorkerContext, step_outside: Callable[[], object]) -> None:
        self._drops = context.pool.connection.foreign == "ignore"
        self._listeners = context.listeners
        self._endings = context.settler.endings
        self._locks_of = context.store.locks_of
        self._step_outside = step_outside
        #: (name of the job, kind of warning)
        self._warned: set[tuple[str, str]] = set()
        #: names of the object jobs whose locks have been looked for
        self._seen: set[str] = set()

    def report(self, payload: Payload, queue: str, plan: Plan, claim: Claim | None) -> None:
        """Report what is odd in this payload, given what is known of its job."""
        is_strange = plan.is_object_job and (self._drops or payload.name not in self._seen)
        if not (payload.warnings or plan.warning or payload.context is not None or claim or is_strange):
            return
        for kind, warning in (*self._found(payload, plan), *(self._of_object_job(payload, plan) if is_strange else ())):
            if warning and (payload.name, kind) not in self._warned:
                self._warned.add((payload.name, kind))
                self._step_outside()
                self._listeners.emit(PayloadOdd(facts_of(payload, queue), warning))

    def _found(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        """Each oddity's kind and words; that of a lock counts as one kind whatever the lock's name."""
        yield from ((warning, warning) for warning in (*payload.warnings, plan.warning))
        yield "unique lock", self._endings.warning(payload)

    def _of_object_job(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        yield "dropped", self._endings.dropped(payload)
        if plan.handler and payload.name not in self._seen:
            self._seen.add(payload.name)
            if not plan.is_unique and not self._endings.held_locks(payload):
                yield "unnamed lock", self._unnamed_lock(payload)

    def _unnamed_lock(self, payload: Payload) -> str:
        """The warning if a class whose payloads name no lock (before 11.39, ``Schedule::job()``) seems to hold one.

        The id is made in PHP; it is usually empty, or one of the arguments. A guess is only reported, as releasing it
        might end another job's lock.
        """
        try:
            arguments = self._endings.commands.of(payload).arguments.values()
            words = [str(one) for one in arguments if type(one) in (str, int)][:_MOST]
            ids = ["", *(word for word in words if len(word) <= _LONGEST)]
            job, display_name = payload.name, payload.options.display_name
            held = [*self._locks_of.owners([name for one in ids for name in names_of(job, display_name, one)])]
        except (BadArguments, StoreError):
            return ""
        return (
            f"the unique lock {held[0]!r} stays held: the payload does not name it; set unique_id on its handler"
            if held
            else ""
        )


class Starter:
    """Binds handlers to their arguments, and refuses attempts that must not begin."""

    def __init__(self, context: WorkerContext) -> None:
        self._registry = context.registry
        self._listeners = context.listeners
        self._endings = context.settler.endings
        self._batches = context.batches
        self._code = _code_of(context.slot_writer.slot.generation, alone=context.alone)

    def task(self, job: Current, plan: Plan, now: float, suspicions: int = 0) -> Task:
        """The handler with its arguments; ``suspicions`` is the tally, if known.

        Raises ``JobError`` if the job must not or cannot start.
        """
        try:
            return self._task(job, plan, now, suspicions)
        except JobError as refusal:
            refusal.began = False
            if self._code and may_be_newer(refusal):
                refusal.args = (f"{refusal}; {self._code}",)
            raise

    def _task(self, job: Current, plan: Plan, now: float, suspicions: int) -> Task:
        payload = job.payload
        handler = plan.handler or self._registry.find(payload.name)
        if refusal := may_start(payload.name, payload.attempts, plan.policy, now, suspicions):
            raise refusal.error
        taken: Mapping[str, Any] | None = None
        if plan.is_member and (flow := job.flow):
            if flow.left_out:
                job.run = job.run._replace(is_left_out=True)
                return self._skipped(job, flow.left_out)
            flow.check(payload.name)
            taken = flow.taken
        if plan.limits and job.lacks:
            raise job.lacks
        if plan.has_end and (late := self._late(job, handler, now)):
            return late
        if not plan.is_object_job:
            data = self._endings.commands.data_of(payload)
            return bound(handler, {**data, **taken} if taken else data, plan.read)
        command = self._endings.commands.of(payload)
        task = bound(handler, command.arguments, plan.read)
        if command.is_alone:
            return task
        if missing := self._endings.refusal(payload):
            raise missing
        if why := self._cancelled(payload, handler.options.skip_if_cancelled):
            return self._skipped(job, why)
        return _within(task, handler, command) if command.middleware else task

    def task_of(self, job: Current, plan: Plan) -> Task | None:
        """The handler with its arguments, for a hook of a job that is over; ``None`` if they do not fit."""
        if plan.handler is None:
            return None
        try:
            data, flow = self._endings.commands.data_of(job.payload), job.flow
            return bound(plan.handler, {**data, **flow.taken} if flow and flow.taken else data, plan.read)
        except Exception:  # noqa: BLE001 - the arguments do not fit, which is why the job failed
            return None

    def _late(self, job: Current, handler: Handler, now: float) -> Skipped | None:
        """Skip the job if its handler sets ``expires`` and it comes too late for its first attempt."""
        late = late_by(job.payload.fields, now) if handler.options.expires and self._is_first(job) else 0.0
        return self._skipped(job, f"it expired {late:.1f} s before it could begin") if late else None

    def _is_first(self, job: Current) -> bool:
        return job.attempts <= 1 and not job.went_on

    def _skipped(self, job: Current, why: str) -> Skipped:
        self._listeners.emit(JobSkipped(facts_of(job.payload, job.queue), why))
        job.run = job.run._replace(cancelled=why)
        return Skipped(why)

    def _cancelled(self, payload: Payload, asks: bool) -> str:
        """Why the job is skipped: its batch was cancelled, and its handler or middleware asks for that; else empty."""
        batch_id = self._endings.batch_of(payload, if_skipped=not asks)
        batch = self._batches().find(batch_id) if batch_id else None
        return f"batch {batch.id} was cancelled" if batch and batch.cancelled else ""


def _within(task: Task, handler: Handler, command: ObjectCommand) -> Task:
    """The task inside the middleware that PHP's job carries. Raises ``NeedsLaravel`` for what only PHP knows of it."""
    from queuepool.jobs.middleware import within  # imported here: few jobs have any
    from queuepool.jobs.php_middleware import of_php

    several = of_php(handler.name, command.middleware, handler.options.around)
    return within(task, several, command.arguments, is_async=handler.is_async) if several else task


def _code_of(generation: int, *, alone: bool) -> str:
    """Which code this worker runs, in words: a job unknown to it may exist in newer code.

    Empty if this process has imported no modules.
    """
    if not at_import.ended_at:
        return ""
    at = datetime.fromtimestamp(at_import.ended_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if alone:
        return f"this worker runs code imported at {at}: if the job is newer, restart the worker"
    return f"this worker runs code of generation {generation}, imported at {at}: if the job is newer, reload the pool"


class Skipped(NamedTuple):
    """A task that runs nothing; the job counts as done."""

    why: str
    after_succeeded: None = None

    def run(self) -> object:
        return None

    def after_failed(self, error: BaseException) -> object:
        return None


def followed(run: Run, task: Task, returned: object) -> Run:
    """The run with what followers of the job learn from the value that its task has returned."""
    if run.cancelled:
        return run
    result, problem = result_of(returned)
    return run._replace(result=result, result_problem=problem)
