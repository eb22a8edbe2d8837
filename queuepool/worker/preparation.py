"""Preparing a reserved job: its payload is read, how it is to be run is looked up, its handler gets its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from queuepool.errors import BadArguments, BadPayload, JobError, StoreError
from queuepool.events import JobSkipped, PayloadOdd
from queuepool.jobs import at_import
from queuepool.jobs.current_job import Current
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import Handler, Task, arguments_for, bound
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.options import late_by
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import names_of
from queuepool.payload.wrappers import Claim
from queuepool.settlement.facts import facts_of
from queuepool.settlement.run import Run
from queuepool.settlement.settler import DEADLY, Settler
from queuepool.settlement.states import result_of
from queuepool.settlement.verdict import Locks, may_be_newer, may_start
from queuepool.worker.context import WorkerContext
from queuepool.worker.plan import Plan, Plans

#: which attempts a payload says that it has had, at any depth
_ATTEMPTS = re.compile(rb'"attempts"\s*+:\s*+"?+0*+(\d++)')
#: an id of a lock that is looked for: how many of a job's arguments, and how many characters
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
        """Raises ``BadPayload``. What was not understood in a payload is reported once for each name."""
        signer, raw, attempts = self._signer, lease.receipt, lease.attempts
        payload = signer.verify(raw, lease.queue, attempts) if signer else decode(raw, attempts)
        plan = self._plans.of(payload)
        claim = self._endings.claim(payload) if plan.is_object_job else None
        if plan.handler and (plan.is_unique or (claim and claim.until_start)):
            plan = self._unique(payload, plan, plan.handler.options, claim)
        self._oddities.report(payload, lease.queue, plan, claim)
        return payload, plan

    def _unique(self, payload: Payload, plan: Plan, options: Options, claim: Claim | None) -> Plan:
        """The plan of a job of whose unique lock more is known; its policy has that for the steward."""
        try:
            given = self._given(payload, options)
        except Exception as error:  # noqa: BLE001 - the application's function; the job itself may run
            why = f"its unique_id raised {error!r}: its lock, if it has one, stays held"
            return plan._replace(warning=why)
        if options.unique_until == "start" or (claim and claim.until_start):
            held = self._endings.held_locks(payload, given)
            # Later attempts by owner only: another job may hold the lock by now.
            return plan.with_locks((), tuple(lock for lock in held if lock.owner or payload.attempts <= 1))
        return plan.with_locks(given)

    def _given(self, payload: Payload, options: Options) -> Locks:
        """The names that the lock may have by the handler's ``unique_id``; ``None`` if the payload names it itself."""
        if not options.unique_id or self._endings.said_locks(payload):
            return None
        args, kwargs = arguments_for(options.unique_id, self._endings.commands.data_of(payload))
        identity = str(options.unique_id(*args, **kwargs))
        identity.encode()  # with a lone surrogate no store could be asked for the lock, nor end the job
        return names_of(payload.name, payload.options.display_name, identity)


class LonePreparer:
    """A lone worker's ``Preparer``: what has killed who read it is set aside, which the steward does in a pool.

    Nobody sees a lone worker die; that a job comes a second time may mean that. So before such a job is read the store
    counts it, by its bytes, and forgets that once it has been read. A job that comes for the first time costs nothing.
    """

    def __init__(self, preparer: Preparer, settler: Settler) -> None:
        self._preparer = preparer
        self._settler = settler

    def prepare(self, lease: Lease) -> tuple[Payload, Plan]:
        """As ``Preparer.prepare``; raises ``BadPayload`` also for what a reader has died of."""
        if not _has_come_before(lease):
            return self._preparer.prepare(lease)
        if self._settler.suspect(lease):
            raise BadPayload(DEADLY)
        try:
            prepared = self._preparer.prepare(lease)
        except BadPayload:
            self._settler.acquit(lease)
            raise
        self._settler.acquit(lease)
        return prepared


def _has_come_before(lease: Lease) -> bool:
    """Whether this is not the first attempt, without reading the payload: rather once too often than not at all."""
    if lease.attempts is not None:
        return lease.attempts > 1
    return any(attempts != b"1" for attempts in _ATTEMPTS.findall(lease.receipt))


class Oddities:
    """What is odd in the payloads of one worker's jobs, and what is lost of them.

    Each is said once for each name of a job. ``step_outside`` is called before an event is emitted.
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
        """Report what is odd in this payload, by what is known of its job."""
        is_strange = plan.is_object_job and (self._drops or payload.name not in self._seen)
        if not (payload.warnings or plan.warning or payload.context is not None or claim or is_strange):
            return
        for kind, warning in (*self._found(payload, plan), *(self._of_object_job(payload, plan) if is_strange else ())):
            if warning and (payload.name, kind) not in self._warned:
                self._warned.add((payload.name, kind))
                self._step_outside()
                self._listeners.emit(PayloadOdd(facts_of(payload, queue), warning))

    def _found(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        """Each kind, and its words; that of a lock without regard to its key."""
        yield from ((warning, warning) for warning in (*payload.warnings, plan.warning))
        yield "unique lock", self._endings.warning(payload)

    def _of_object_job(self, payload: Payload, plan: Plan) -> Iterator[tuple[str, str]]:
        yield "dropped", self._endings.dropped(payload)
        if plan.handler and payload.name not in self._seen:
            self._seen.add(payload.name)
            if not plan.is_unique and not self._endings.held_locks(payload):
                yield "unnamed lock", self._unnamed_lock(payload)

    def _unnamed_lock(self, payload: Payload) -> str:
        """The lock of a class whose payloads do not name it, as before 11.39 and by ``Schedule::job()``; one look.

        The id is made in PHP. None is the usual one, or one of the arguments; releasing a guess might end the lock of
        another job.
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
            f"the unique lock {held[0]!r} stays held: no payload names it, so give its handler unique_id"
            if held
            else ""
        )


class Starter:
    """What one attempt runs, or why it must not begin: binds handlers to their arguments."""

    def __init__(self, context: WorkerContext) -> None:
        self._registry = context.registry
        self._listeners = context.listeners
        self._endings = context.settler.endings
        self._batches = context.batches
        self._code = _code_of(context.slot_writer.slot.generation, alone=context.alone)

    def task(self, job: Current, plan: Plan, now: float) -> Task:
        """The handler with its arguments. Raises ``JobError`` if the job may not or cannot start."""
        try:
            return self._task(job, plan, now)
        except JobError as refusal:
            refusal.began = False
            if self._code and may_be_newer(refusal):
                refusal.args = (f"{refusal}; {self._code}",)
            raise

    def _task(self, job: Current, plan: Plan, now: float) -> Task:
        payload = job.payload
        handler = plan.handler or self._registry.find(payload.name)
        if refusal := may_start(payload.name, payload.attempts, plan.policy, now):
            raise refusal.error
        if plan.has_end and (late := self._late(job, handler, now)):
            return late
        if not plan.is_object_job:
            return bound(handler, self._endings.commands.data_of(payload), plan.read)
        command = self._endings.commands.of(payload)
        task = bound(handler, command.arguments, plan.read)
        if command.is_alone:
            return task
        if missing := self._endings.refusal(payload):
            raise missing
        why = self._cancelled(payload, handler.options.skip_if_cancelled)
        return self._skipped(job, why) if why else task

    def task_of(self, job: Current, plan: Plan) -> Task | None:
        """The handler with its arguments, for a hook of a job that is over; ``None`` if it has none that fit."""
        if plan.handler is None:
            return None
        try:
            return bound(plan.handler, self._endings.commands.data_of(job.payload), plan.read)
        except Exception:  # noqa: BLE001 - arguments that do not fit are why it failed
            return None

    def _late(self, job: Current, handler: Handler, now: float) -> Skipped | None:
        """A job whose handler says ``expires``, and that comes too late to begin; one that has begun is another's."""
        late = late_by(job.payload.fields, now) if handler.options.expires and job.attempts <= 1 else 0.0
        return self._skipped(job, f"it expired {late:.1f} s before it could begin") if late else None

    def _skipped(self, job: Current, why: str) -> Skipped:
        self._listeners.emit(JobSkipped(facts_of(job.payload, job.queue), why))
        return Skipped(why)

    def _cancelled(self, payload: Payload, asks: bool) -> str:
        """Why the job is left out: its batch was cancelled, and its handler or its middleware asks for that."""
        batch_id = self._endings.batch_of(payload, if_skipped=not asks)
        batch = self._batches().find(batch_id) if batch_id else None
        return f"batch {batch.id} was cancelled" if batch and batch.cancelled else ""


def _code_of(generation: int, *, alone: bool) -> str:
    """Which code this worker runs, in words: what it does not know may be in newer code.

    Empty if this process has imported no modules.
    """
    if not at_import.ended_at:
        return ""
    at = datetime.fromtimestamp(at_import.ended_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if alone:
        return f"this worker runs code that it imported at {at}: if the job is newer, start it again"
    return f"this worker runs code of generation {generation}, imported at {at}: if the job is newer, reload the pool"


class Skipped(NamedTuple):
    """Runs nothing; the job counts as done."""

    why: str
    after_succeeded: None = None

    def run(self) -> object:
        return None

    def after_failed(self, error: BaseException) -> object:
        return None


def followed(run: Run, task: Task, returned: object) -> Run:
    """What those that follow the job learn of a task that has returned this value."""
    if isinstance(task, Skipped):
        return run._replace(cancelled=task.why)
    result, problem = result_of(returned)
    return run._replace(result=result, result_problem=problem)
