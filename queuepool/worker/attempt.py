"""Make attempts at jobs: prepare one, run it, report it; leave it to the next reserve if it is done, else settle it."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import suppress

from queuepool import errors
from queuepool.board import cancel_orders
from queuepool.board.cancel_orders import CancelOrder
from queuepool.errors import BadPayload
from queuepool.events import (
    JobCancelled,
    JobExceptionOccurred,
    JobProcessed,
    JobProcessing,
    KilledAttempt,
    LeaseLost,
    ResultNotKept,
    StepUnused,
)
from queuepool.jobs.around import HOOKS
from queuepool.jobs.current_job import Current, running, set_current
from queuepool.jobs.job_options import Retry
from queuepool.jobs.registry import Task
from queuepool.log import JobLines
from queuepool.log.captured import INCOMPLETE, log_incomplete
from queuepool.log.tracebacks import text_of
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import NOTHING, Lease, Tallies
from queuepool.settlement.cancelled import cancelled_in
from queuepool.settlement.deferred_hooks import say_not_called
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import Delete, Fail, Release, Verdict, judge, judge_release, needs_tallies
from queuepool.unix import fork
from queuepool.unix.exit_codes import BROKEN
from queuepool.worker.asking import AskFirst
from queuepool.worker.context import WorkerContext
from queuepool.worker.flows import FlowsOfWorker
from queuepool.worker.invoker import Invoker, JobHooks
from queuepool.worker.job_attempt import JobAttempt
from queuepool.worker.plan import Plan
from queuepool.worker.preparation import Starter, followed, preparer_of
from queuepool.worker.step_keeper import has_left, is_of

_DELETE = Delete()


class Runner:
    """Makes attempts, one after another, in one process.

    The kernel's alarm and the slot's deadline limit a job's time. Work for the job outside its own code, in the store
    or in listeners, begins with ``_step_outside``, which stops that clock. Most jobs need none of this: the next job's
    clock replaces theirs.
    """

    def __init__(self, context: WorkerContext, job_lines: JobLines, invoker: Invoker | None = None) -> None:
        self._parent = context.parent
        self._store = context.store
        self._outage = context.outage
        self._unknown_retry = context.pool.unknown_retry
        self._listeners = context.listeners
        self._slot_writer = context.slot_writer
        self._batch = context.slot_writer.batch
        self._meter = context.slot_writer.meter
        self._settler = context.settler
        self._attempts = context.settler.attempts
        self._preparer = preparer_of(context, self._step_outside)
        self._starter = Starter(context)
        self._invoker = self._slot_writer.invoker = invoker or Invoker(context.listeners)
        self._hooks = JobHooks(context.listeners, self._invoker)
        self._flows = FlowsOfWorker(context)
        self._asking = AskFirst(context, self._flows, self._preparer.prepare)
        self._job_lines = job_lines

    def run(self, lease: Lease) -> None:
        """Run the job and settle it, or note it as done if nothing is left but to delete it."""
        number = self._batch.number
        self._batch.reads(number)
        try:
            payload, plan = self._preparer.prepare(lease)
        except BadPayload as bad:
            self._quarantine(lease, number, bad.reason)
            return
        attempt = JobAttempt(lease, number, payload, plan, Current(payload, lease.queue, lease=lease))
        if plan.asks and not self._ask_store(attempt):
            return
        if INCOMPLETE:  # by a listener
            log_incomplete()
        attempt.began = self._slot_writer.begins(payload, lease.queue, plan, number)
        began = time.monotonic()
        self._perform(attempt)
        ended = time.monotonic()
        attempt.duration = ended - began
        try:
            if attempt.verdict is None:
                self._settle(attempt)
            else:
                self._done(attempt, ended)
        finally:
            # The error's traceback holds this frame, and so the attempt: all that the job had in memory would stay
            # until the next garbage collection.
            attempt.error = attempt.verdict = None

    def call_deferred_hook(self, lease: Lease, error: BaseException) -> None:
        """Call the ``after_failed`` hook of a job that failed when another worker died."""
        with suppress(BadPayload):  # its signing keys may have changed since
            payload, plan = self._preparer.prepare(lease)
            if plan.handler is None:
                say_not_called(lease.queue, f"this pool knows no job {payload.name}")
            self._call_after_failed(payload, lease.queue, plan, error)

    def tasks(self, lane: int | None = None) -> Collection[object]:
        """The tasks of the running job, or of the job in this lane."""
        return self._invoker.tasks()

    def look_for_an_order(self) -> None:
        """From a signal's handler, at any moment: if the running job is cancelled and can end by itself, tell it to."""
        slot, number, job = self._slot_writer.slot, self._batch.number, running()
        order = cancel_orders.order_for(slot, number)
        if order is None or job is None or not cancel_orders.runs(slot, order.hand, number):
            return
        # It is told once: a second cancellation would hit it while it cleans up.
        can_end = job.cancelled or self._invoker.cancel() or job.asks
        if can_end:
            job.cancel(cancelled_in(job.payload, order.by), requeue=order.requeue)
        cancel_orders.answer(slot, order, can_end=can_end)
        fork.wake_parent(self._parent)

    def leave_if_broken(self) -> None:
        """Exit if a job has closed the worker's files."""
        # If a job has closed all files, a new connection may get the descriptors of the log and the trace. Not one
        # more line may be written; the steward settles what the board shows.
        if not self._slot_writer.is_intact():
            self._batch.breaks()
            os._exit(BROKEN)

    def _quarantine(self, lease: Lease, number: int, reason: str) -> None:
        self._step_outside()
        self._settler.quarantine(lease, reason)
        self._batch.settled(number)
        self._settler.emit_noted()

    def _ask_store(self, attempt: JobAttempt) -> bool:
        """Ask what the job needs before it begins; ``False`` if it does not begin now."""
        if attempt.plan.is_member and self._flows.joined(attempt.job, attempt.plan):
            return True
        self._batch.has_read(attempt.number)
        self._step_outside()
        now = self._asking.ask(attempt.job, attempt.plan)
        if now is None:
            self._batch.settled(attempt.number)
            return False
        attempt.now = now
        return True

    def _perform(self, attempt: JobAttempt) -> None:
        """Call the handler and its hooks; note what it raises, or that it has succeeded."""
        job, plan = attempt.job, attempt.plan
        set_current(job)
        entered = self._hooks.enter(job) if HOOKS else None
        try:
            task = self._starter.task(job, plan, attempt.now)
            self._invoker.renew_connections()
            if self._listeners.wants(JobProcessing):
                self._listeners.emit(JobProcessing(attempt.facts))
            if plan.guard is None:
                returned = self._invoker.call(task.run)
            else:
                returned = plan.guard.call(self._invoker, task.run, job)
        # Whatever a job raises, even SystemExit, ends the job, not the worker.
        except BaseException as raised:  # noqa: BLE001
            attempt.error = raised
            job.ends()  # who cancels it from now on need not kill it, while its hooks tell of its end
            self._slot_writer.may_end()
        has_returned = attempt.error is None
        self._invoker.leave_if_forked(attempt.error)
        if has_returned if job.verdict is None else isinstance(job.verdict, Delete):
            attempt.verdict = _DELETE
            if plan.may_follow:
                self._note_success(attempt, task, returned if has_returned else None)
            else:
                self._batch.succeeded(attempt.number)
        if not self._slot_writer.is_open():
            self.leave_if_broken()
        if has_returned and attempt.verdict is not None and (hook := task.after_succeeded):
            self._hooks.call(job, "after_succeeded", hook)
        if entered:
            self._hooks.leave(job, entered, attempt.error)
        # Only now: tasks that do not end in time cost the worker, but not the job that succeeded.
        if self._invoker.has_awaited:
            self._invoker.clear(attempt.facts)
        self._invoker.renew_connections()
        self._batch.ended()

    def _note_success(self, attempt: JobAttempt, task: Task | None, returned: object) -> None:
        """Of a job from whose end something may follow."""
        if not attempt.is_told_by_end:  # and hooks may still add to its flow
            self._batch.succeeded(attempt.number)
        if task and attempt.error is None and attempt.plan.track:
            attempt.job.run = followed(attempt.job.run, task, returned)

    def _done(self, attempt: JobAttempt, ended: float) -> None:
        """Let the next reserve delete the job (``Prefetch``), unless something follows from its end."""
        is_line_due = self._job_lines.is_due(ended)
        job, plan = attempt.job, attempt.plan
        # From most jobs nothing can follow, so ask no further.
        may_follow = plan.may_follow or attempt.payload.context is not None or job.steps is not None
        follows = may_follow and self._follows(attempt)
        if is_line_due or follows or INCOMPLETE or attempt.error is not None or self._listeners.wants(JobProcessed):
            self._leave_job()
            self._report(attempt)
            if is_line_due:
                self._job_lines.write(attempt.processed, ended)
        else:
            set_current(None)
        self._meter.done(attempt.duration)
        if follows:
            self._finish(attempt)
        else:
            lease = attempt.lease if self._attempts is None else self.done_lease(attempt)
            if job.holder:
                lease = lease._replace(holder=job.holder)
            if plan.is_member:
                lease = self._flows.with_end(lease, job)
                self._batch.succeeded(attempt.number)
            self._batch.done.append(lease)

    def done_lease(self, attempt: JobAttempt) -> Lease:
        """The lease of a job that is done, with the record of its attempt, where that is kept."""
        assert self._attempts
        if attempt.job.run.cancelled:
            return self._attempts.settled(attempt.lease, attempt.payload, attempt.run, _DELETE, None, None)
        return self._attempts.done(attempt.lease, attempt.payload, attempt.began, attempt.duration)

    def _follows(self, attempt: JobAttempt) -> bool:
        plan, job, endings = attempt.plan, attempt.job, self._settler.endings
        has_more = plan.track or plan.policy.locks is not None or job.run.reports is not None
        has_more = has_more or (plan.is_member and not self._flows.may_wait(job))
        has_more = has_more or (job.holder != "" and not self._asking.limits.may_wait)
        return bool(has_more or job.steps is not None or endings.after(attempt.payload) != NOTHING)

    def _finish(self, attempt: JobAttempt) -> None:
        """Settle at once a job from which something follows."""
        self._settler.settle(attempt.settlement(_DELETE))
        if attempt.is_told_by_end:
            self._batch.succeeded(attempt.number)
        self._batch.settled(attempt.number)
        if problem := attempt.job.run.result_problem:
            self._listeners.emit(ResultNotKept(attempt.facts, problem))
        if attempt.job.steps and (unused := attempt.job.steps.unused):
            self._listeners.emit(StepUnused(attempt.facts, unused))
        self._settler.emit_noted()

    def _settle(self, attempt: JobAttempt) -> None:
        """Rule on a job that has not succeeded, and carry that out."""
        self._leave_job()  # first: time in the store and in listeners is not the job's
        if order := cancel_orders.order_for(self._slot_writer.slot, attempt.number):
            self._cancel(attempt, order)
        elif is_of(errors.LeaseEnded, attempt.error):
            self._lose(attempt)
        elif has_left(attempt.job, attempt.error):
            self._leave(attempt)
        else:
            attempt.verdict = self._rule(attempt)
            self._report(attempt)
            self._carry_out(attempt, attempt.verdict)

    def _lose(self, attempt: JobAttempt) -> None:
        """Settle nothing: another worker may have the job."""
        self._meter.loses()
        self._note_settled(attempt)
        self._listeners.emit(LeaseLost(attempt.facts))
        self._settler.loses(attempt.lease, attempt.payload, attempt.run)

    def _leave(self, attempt: JobAttempt) -> None:
        """The job has left at one of its steps, and goes on in another worker."""
        self._settler.give_back_begun(attempt.payload, attempt.ending_lease, run=attempt.run)
        self._meter.gives_back()
        self._ends(attempt, None)

    def _cancel(self, attempt: JobAttempt, order: CancelOrder) -> None:
        """The job was cancelled, and has ended by itself."""
        payload, trace = attempt.payload, text_of(attempt.error) if attempt.error is not None else ""
        attempt.error = error = cancelled_in(payload, order.by, trace)
        ended = KilledAttempt(attempt.began, time.time(), payload.extra, is_cancelled=True)
        attempt.cause = JobCancelled(attempt.facts, order.by, ended)
        if order.requeue:
            is_back = self._settler.give_back_begun(payload, attempt.ending_lease, attempt.cause, attempt.run)
            self._meter.gives_back()
            self._ends(attempt, order if is_back else None)
        else:
            attempt.verdict = Fail(error)
            self._carry_out(attempt, attempt.verdict, order)

    def _carry_out(self, attempt: JobAttempt, verdict: Verdict, order: CancelOrder | None = None) -> None:
        is_ours = self._settler.settle(attempt.settlement(verdict))
        self._meter.settles(verdict, is_ours)
        self._ends(attempt, order if is_ours else None)
        if is_ours and isinstance(verdict, Fail):
            self._call_after_failed(attempt.payload, attempt.lease.queue, attempt.plan, verdict.error)

    def _ends(self, attempt: JobAttempt, order: CancelOrder | None) -> None:
        """The job is settled; ``order`` is the one that it was cancelled by, if any."""
        if order:
            cancel_orders.carried_out(self._slot_writer.slot, order)
        self._note_settled(attempt)
        self._settler.emit_noted()

    def _note_settled(self, attempt: JobAttempt) -> None:
        self._batch.settled(attempt.number)
        self._meter.settled(attempt.duration)

    def _rule(self, attempt: JobAttempt) -> Verdict:
        """The verdict: what the handler asked for, but a ``postpone``, outranks what it raised. Waits out an outage."""
        job, error, requested = attempt.job, attempt.error, attempt.job.verdict
        if isinstance(requested, Fail):
            return requested
        payload, policy, tallies = attempt.payload, attempt.plan.policy, Tallies()
        now = attempt.now + attempt.duration
        if not job.is_final and needs_tallies(payload.attempts, policy):
            tallies = self._outage.insist(lambda: self._store.tallies(payload.id, attempt.lease.queue))[0]
        if isinstance(requested, Release) and (requested.uses_try or error is None):
            return judge_release(requested, payload.name, payload.attempts, policy, tallies, now)
        after = error.after if isinstance(error, Retry) else job.retry_after
        facts, wait = (payload.attempts, policy, tallies, now), self._unknown_retry
        return judge(error, *facts, is_final=job.is_final, after=after, job_id=payload.id, unknown_retry=wait)

    def _report(self, attempt: JobAttempt) -> None:
        if attempt.error is not None:  # not by truth value: an exception with a len() of 0 is false
            self._meter.raised(attempt.error)
            self._listeners.emit(JobExceptionOccurred(attempt.facts, attempt.error, attempt.duration))
        elif self._listeners.wants(JobProcessed):
            self._listeners.emit(attempt.processed)

    def _call_after_failed(self, payload: Payload, queue: str, plan: Plan, error: BaseException) -> None:
        """Call ``after_failed``. The job is already over: a hook that hangs or raises cannot change that."""
        job = Current(payload, queue)
        self._slot_writer.arm(plan.timeout)
        if task := self._starter.task_of(job, plan):
            self._invoker.renew_connections()
            set_current(job)
            self._hooks.call(job, "after_failed", lambda: task.after_failed(error))
            if self._invoker.has_awaited:
                self._invoker.clear(facts_of(payload, queue))
        self._leave_job()

    def _leave_job(self) -> None:
        """End the current job, after logging what it printed without a newline."""
        self._step_outside()
        if INCOMPLETE:
            log_incomplete()
        set_current(None)

    def _step_outside(self) -> None:
        """Stop the job's clock before something is written; exit if the worker's files are broken."""
        self._slot_writer.alive()
        self.leave_if_broken()
