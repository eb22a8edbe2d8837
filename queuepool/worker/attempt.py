"""One attempt at one job: prepare it, run it, rule on it, settle it, report it."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from queuepool.errors import BadPayload
from queuepool.events import JobExceptionOccurred, JobProcessed, JobProcessing, ResultNotKept
from queuepool.jobs.around import HOOKS
from queuepool.jobs.current_job import Current, set_current
from queuepool.log.captured import INCOMPLETE, log_incomplete
from queuepool.payload.ending import NOTHING
from queuepool.payload.lease import Lease
from queuepool.settlement.run import Run
from queuepool.settlement.verdict import Delete, Fail, Release
from queuepool.unix.exit_codes import BROKEN
from queuepool.worker.code import words_on
from queuepool.worker.context import WorkerContext
from queuepool.worker.invoker import Invoker
from queuepool.worker.job_hooks import JobHooks
from queuepool.worker.job_lines import JobLines
from queuepool.worker.lone_preparation import LonePreparer
from queuepool.worker.preparation import Attempt, Preparer
from queuepool.worker.ruling import Ruler
from queuepool.worker.starting import Starter, followed


class Runner:
    """Runs jobs one after another, in one process."""

    def __init__(self, context: WorkerContext, job_lines: JobLines, invoker: Invoker | None = None) -> None:
        self._listeners = context.listeners
        self._slot_writer = context.slot_writer
        self._batch = context.slot_writer.batch
        self._meter = context.slot_writer.meter
        self._settler = context.settler
        self._endings = context.settler.endings
        preparer = Preparer(context, self._pause)
        self._preparer = LonePreparer(preparer, context.settler) if context.alone else preparer
        code = words_on(context.slot_writer.slot.generation, alone=context.alone)
        self._starter = Starter(context.registry, context.listeners, self._endings, context.batches, code)
        self._ruler = Ruler(context.store, context.outage, context.pool.unknown_retry)
        self._invoker = invoker or Invoker(context.listeners)
        self._hooks = JobHooks(context.listeners, self._invoker)
        self._job_lines = job_lines

    def run(self, lease: Lease) -> None:
        """Run the job, and settle it unless only its receipt is left to be deleted: the batch then has it as done."""
        self._batch.reads()
        try:
            attempt = self._preparer.prepare(lease)
        except BadPayload as bad:
            self._quarantine(lease, bad.reason)
            return
        if attempt.unlocks:
            self._batch.has_read()
            self._pause()
            self._settler.unlock(attempt.facts, attempt.payload, attempt.unlocks)
        if INCOMPLETE:  # by a listener
            log_incomplete()
        # Read the clock while the job still counts as not started, and before its timeout starts.
        now = self._now(attempt)
        job = Current(attempt.payload, lease.queue)
        self._slot_writer.begins(attempt.payload, lease.queue, attempt.plan)
        began = time.monotonic()
        # Keep the error in no variable: its traceback holds this frame, so all that the job had in memory would stay
        # until the next garbage collection.
        self._conclude(attempt, job, self._perform(attempt, job, now), began, now)

    def _now(self, attempt: Attempt) -> float:
        """The store's clock, in Unix seconds, if the job may come too late."""
        if not attempt.plan.has_end:
            return 0.0
        self._batch.has_read()
        self._pause()
        return self._ruler.now()

    def _conclude(self, attempt: Attempt, job: Current, error: BaseException | None, began: float, now: float) -> None:
        ended = time.monotonic()
        duration = ended - began
        if error is None and job.verdict is None:  # nearly always: there is nothing to judge
            self._report(attempt, error, duration)
            self._settle_done(attempt, job, duration, ended)
            return
        self._pause()  # time in the store and in listeners is not the job's
        verdict = self._ruler.rule(attempt, job, error, now + duration)
        if isinstance(verdict, Delete):
            self._batch.succeeded()
            self._report(attempt, error, duration)
            self._settle_done(attempt, job, duration, ended)
        else:
            self._report(attempt, error, duration)
            self._settle(attempt, job, verdict, error, duration)

    def _settle_done(self, attempt: Attempt, job: Current, duration: float, ended: float) -> None:
        self._meter.done(duration)
        if self._job_lines.is_due(ended):
            self._pause()
            self._job_lines.write(attempt.processed(duration), ended)
        # Most jobs cannot have anything that follows from them: no more is asked of these.
        plan = attempt.plan
        if (plan.may_follow or attempt.payload.context is not None) and self._follows(attempt):
            self._finish(attempt, job)
        else:
            self._batch.done.append(attempt.lease)

    def _follows(self, attempt: Attempt) -> bool:
        plan = attempt.plan
        return bool(plan.track or plan.policy.locks is not None or self._endings.after(attempt.payload) != NOTHING)

    def _finish(self, attempt: Attempt, job: Current) -> None:
        """Remove a job at once from which something follows."""
        self._pause()
        if job.run.result_problem:
            self._listeners.emit(ResultNotKept(attempt.facts, job.run.result_problem))
        self._settler.finish(attempt.lease, attempt.followed, attempt.plan.policy.locks, self._run_of(job))
        self._batch.settled()
        self._settler.emit_noted()

    def _run_of(self, job: Current) -> Run:
        return job.run._replace(began=self._slot_writer.slot.since)

    def _settle(
        self, attempt: Attempt, job: Current, verdict: Release | Fail, error: BaseException | None, duration: float
    ) -> None:
        tally = "exceptions" if error is not None and attempt.plan.policy.max_exceptions is not None else ""
        locks, run = attempt.plan.policy.locks, self._run_of(job)
        ours = self._settler.settle(attempt.lease, attempt.followed, verdict, error, tally, locks=locks, run=run)
        self._meter.settles(verdict, ours)
        self._batch.settled()
        self._meter.settled(duration)
        self._settler.emit_noted()
        if ours and isinstance(verdict, Fail):
            self._call_after_failed(attempt, verdict.error)

    def call_deferred_hook(self, lease: Lease, error: BaseException) -> None:
        """Call the ``after_failed`` hook of a job that failed when another worker died."""
        with suppress(BadPayload):  # its signing keys may have changed since
            self._call_after_failed(self._preparer.prepare(lease), error)

    def _quarantine(self, lease: Lease, reason: str) -> None:
        self._pause()
        self._settler.quarantine(lease, reason)
        self._batch.settled()
        self._settler.emit_noted()

    def _perform(self, attempt: Attempt, job: Current, now: float) -> BaseException | None:
        set_current(job)
        surrounding = self._hooks.enter(attempt, job) if HOOKS else None
        try:
            task = self._starter.task(attempt, now)
            self._invoker.renew_connections()
            if self._listeners.wants(JobProcessing):
                self._listeners.emit(JobProcessing(attempt.facts))
            if attempt.plan.guard is None:
                returned = self._invoker.call(task.run)
            else:
                returned = attempt.plan.guard.call(self._invoker, task.run, job)
            error = None
        # Whatever a job raises, even SystemExit, ends the job and not the worker.
        except BaseException as raised:  # noqa: BLE001
            error = raised
        self._invoker.leave_if_forked(error)
        succeeded = error is None and (job.verdict is None or isinstance(job.verdict, Delete))
        if succeeded:
            self._batch.succeeded()
            if attempt.plan.track:
                job.run = followed(job.run, task, returned)
        if not self._slot_writer.is_open():
            self.leave_if_broken()
        if succeeded and (hook := task.after_succeeded):
            self._hooks.call(attempt, "after_succeeded", hook)
        if surrounding is not None:
            surrounding.leave(error)
            self._invoker.leave_if_forked()
        # Only now: tasks that do not end in time cost the worker, not a job that succeeded.
        if self._invoker.has_awaited:
            self._invoker.clear(attempt.facts)
        self._invoker.renew_connections()
        self._batch.ended()
        self._leave_job()
        try:
            return error
        finally:
            del error  # as above

    def _leave_job(self) -> None:
        """No job is the current one any more; what it printed without a newline is logged while it still is."""
        if INCOMPLETE:
            self._pause()
            log_incomplete()
        set_current(None)

    def _pause(self) -> None:
        """Stop the job's clock before something is written; exit if the worker's files are broken."""
        self._slot_writer.alive()
        self.leave_if_broken()

    def leave_if_broken(self) -> None:
        # If a job has closed all files, a connection may get the descriptors of the log and the trace next. Not one
        # more line may be written; the steward settles what the board says.
        if not self._slot_writer.is_intact():
            os._exit(BROKEN)

    def _report(self, attempt: Attempt, error: BaseException | None, duration: float) -> None:
        if error is not None:  # not by truth value: an exception with a len() of 0 is false
            self._meter.raised(error)
            self._listeners.emit(JobExceptionOccurred(attempt.facts, error, duration))
        elif self._listeners.wants(JobProcessed):
            self._pause()
            self._listeners.emit(attempt.processed(duration))

    def _call_after_failed(self, attempt: Attempt, error: BaseException) -> None:
        """Call ``after_failed``. The job is already over: a hook that hangs or raises cannot change that."""
        self._slot_writer.arm(attempt.plan.timeout)
        if task := self._starter.task_of(attempt):
            self._invoker.renew_connections()
            set_current(Current(attempt.payload, attempt.lease.queue))
            self._hooks.call(attempt, "after_failed", lambda: task.after_failed(error))
            if self._invoker.has_awaited:
                self._invoker.clear(attempt.facts)
            self._leave_job()
        self._slot_writer.alive()
