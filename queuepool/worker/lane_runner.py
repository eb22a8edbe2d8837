"""One attempt at a job beside others: prepared and settled in the main thread, run on the loop in between.

As ``Runner``, which has one thread for all of it. What a job's own code may see happens on the loop, in the job's
``contextvars``: its hooks, and the events of its begin and end.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

from queuepool.board.orders import CancelOrder
from queuepool.errors import BadPayload, LeaseEnded, PartDown, TimedOut
from queuepool.events import (
    JobExceptionOccurred,
    JobProcessed,
    JobProcessing,
    JobTimedOut,
    KilledAttempt,
    TasksLeft,
)
from queuepool.jobs.around import HOOKS
from queuepool.jobs.current_job import Current, set_job_beside
from queuepool.jobs.registry import Task
from queuepool.log import JobLines
from queuepool.log.captured import INCOMPLETE, log_incomplete_here
from queuepool.log.tracebacks import text_of
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.settlement.cancelled import cancelled_in
from queuepool.settlement.verdict import Delete, Verdict
from queuepool.worker.attempt import Runner
from queuepool.worker.context import WorkerContext
from queuepool.worker.deadlines import Deadlines
from queuepool.worker.django_support import around_beside, with_new_connections
from queuepool.worker.invoker import limited
from queuepool.worker.job_attempt import JobAttempt
from queuepool.worker.lane_board import LaneSlotWriter
from queuepool.worker.lane_loop import LaneLoop
from queuepool.worker.lane_tasks import (
    JobTask,
    LaneTasks,
    LaneThreads,
    Stepped,
    ThreadCount,
    can_end,
    default_threads,
)
from queuepool.worker.plan import Plan
from queuepool.worker.preparation import Skipped
from queuepool.worker.step_keeper import has_left, is_of

_DELETE = Delete()
#: seconds that cancelled tasks have to end, within the timeout of the job that left them
_CANCEL_TIMEOUT = 5.0
#: unproven deaths after which a job runs beside no other suspect. One may be chance: it counts for all that ran then
_SUSPECT = 2
#: seconds between notes of the time that the loop is free
_TICK = 0.05


class LaneRunner(Runner):
    """Makes attempts side by side. ``prepare`` and ``conclude`` run in the main thread, ``begin`` in the loop's."""

    def __init__(self, context: WorkerContext, job_lines: JobLines, loop: LaneLoop, deadlines: Deadlines) -> None:
        super().__init__(context, job_lines)
        assert isinstance(context.slot_writer, LaneSlotWriter)
        self._lanes = context.slot_writer.batch
        self._loop = loop
        self._grace = context.pool.grace
        self._deadlines = deadlines
        concurrency, self._thread_count = context.pool.concurrency, ThreadCount(self._lanes.threads)
        #: for plain functions
        self._threads = LaneThreads(concurrency, self._thread_count)
        #: for their hooks: one that hangs takes no thread from a job
        self._hook_threads = LaneThreads(concurrency, self._thread_count)
        loop.loop.set_default_executor(default_threads(concurrency, self._thread_count))
        #: the context variables set before the first job, copied for each job
        self.context = copy_context()
        #: the running hooks of jobs that are over; each by the identity of its job
        self.hooks: dict[int, asyncio.Task[Any] | None] = {}
        #: seconds that a job, and so its hook, may take: the pool's timeout, or that of a failed job with a longer one
        self.longest = context.pool.timeout or math.inf
        #: the tasks of attempts, by lane
        self._tasks: dict[int, JobTask] = {}
        #: the lanes whose jobs were told to end, at their deadlines or because another worker may have them
        self._told: set[int] = set()
        #: whether the free time of the loop is being counted; once, for all jobs
        self._ticks = False
        self._lost: set[int] = set()
        #: by lane, how attempts are settled that were put off, if it is known
        self._ways: dict[int, Callable[[], object] | None] = {}

    def prepare(self, lease: Lease, lane: int) -> JobAttempt | None:
        """Read the payload of this held job; ``None`` if it does not begin: it is invalid, or parked."""
        self._batch.reads(lane)
        try:
            payload, plan = self._preparer.prepare(lease)
        except BadPayload as bad:
            self._quarantine(lease, lane, bad.reason)
            return None
        self._batch.has_read(lane)
        attempt = JobAttempt(lease, lane, payload, plan, Current(payload, lease.queue, lease=lease))
        if plan.asks and not self._ask_store(attempt):
            return None
        if payload.attempts > 1:
            self._ask_for_suspicions(attempt)
        return attempt

    def _ask_for_suspicions(self, attempt: JobAttempt) -> None:
        """Ask whether the job ran in workers that died without proof of which job killed them."""
        job_id, queue = attempt.payload.id, attempt.lease.queue
        tallies = self._outage.insist(lambda: self._store.tallies(job_id, queue))[0]
        attempt.suspicions = tallies.suspects
        if tallies.suspects >= _SUSPECT:
            attempt.suspect_since = time.monotonic()
            self._lanes.mark_suspect(attempt.number)

    def begin(self, attempt: JobAttempt) -> None:
        """On the loop: begin a task for it."""
        tasks = LaneTasks(self._lanes.lanes, attempt.number)
        ended = partial(self._ended, attempt, tasks)
        self._start(attempt.number, self._run(attempt, tasks), tasks, ended)

    def conclude(self, attempt: JobAttempt) -> bool:
        """Settle an attempt that is over; returns whether only its receipt is left to delete.

        Raises ``PartDown`` if its node is away: it is to be called again for this attempt.
        """
        lane, known = attempt.number, (attempt.error, attempt.verdict)
        kept: tuple[BaseException | None, Verdict | None] = None, None
        is_put_off, settle = lane in self._ways, self._ways.pop(lane, None)
        try:
            if attempt.verdict is None:
                self._counts(attempt, again=is_put_off)  # first: ``abandon`` ends what was begun here
                settle = settle or self._way_to_settle(attempt)
            elif settle is None:  # what is done stays so, even if it is done again
                self._counts(attempt)
                settle = self._way_of_done(attempt)
            if settle:
                settle()
            return settle is None
        except PartDown:
            self._meter.puts_off()
            self._ways[lane], kept = settle, known
            raise
        finally:
            attempt.error, attempt.verdict = kept

    def _way_to_settle(self, attempt: JobAttempt) -> Callable[[], object]:
        """How it is settled, in one try or several."""
        if attempt.is_lost or is_of(LeaseEnded, attempt.error):
            return partial(self._lose, attempt)
        if order := self._lanes.lanes.cancelled(attempt.number):
            return partial(self._cancel, attempt, order)
        if has_left(attempt.job, attempt.error):
            return partial(self._leave, attempt)
        return partial(self._carry_out, attempt, self._rule(attempt))

    def _way_of_done(self, attempt: JobAttempt) -> Callable[[], object] | None:
        """As ``_way_to_settle``; ``None``: only its receipt is left to delete."""
        self._meter.done(attempt.duration)
        self._lanes.counted(attempt.number)
        if self._job_lines.is_due(now := time.monotonic()):
            self._job_lines.write(attempt.processed, now)
        return partial(self._finish, attempt) if self._follows(attempt) else None

    def _note_settled(self, attempt: JobAttempt) -> None:
        # In the opposite order to a worker of one job: of all lanes, the meters know only the attempt counted last.
        self._meter.settled(attempt.duration)
        self._batch.settled(attempt.number)

    def abandon(self, attempt: JobAttempt) -> None:
        """Give it up: the store refuses any verdict on it."""
        self._meter.abandons(attempt.began)

    def _counts(self, attempt: JobAttempt, *, again: bool = False) -> None:
        """The meters are about to count this attempt; ``again``: they were before, and it was put off."""
        self._meter.turn(attempt.lease.queue, attempt.payload.name if attempt.plan.handler else "unknown")
        self._meter.counts(self._lanes.key(attempt.number), attempt.payload, attempt.began, again=again)
        if attempt.error is not None and not again and not has_left(attempt.job, attempt.error):
            self._meter.raised(attempt.error)

    # On the loop.

    def _start(self, lane: int, work: Any, tasks: LaneTasks, ended: Callable[[asyncio.Task[Any]], object]) -> None:
        task = tasks.begin(self._loop.loop, work, self.context.copy())
        self._tasks[lane] = task
        # By a callback: a neighbour may cancel the task before its first step.
        task.add_done_callback(ended)

    async def _run(self, attempt: JobAttempt, tasks: LaneTasks) -> None:
        """The whole attempt, with what the job leaves: it must not raise, since nothing awaits it."""
        plan, task = attempt.plan, self._tasks[attempt.number]
        deadline = tasks.deadline = self._deadlines.begin(plan.timeout, partial(self._tell, task, attempt.number))
        tasks.job, tasks.is_plain = attempt.job, plan.is_plain
        set_job_beside(attempt.job)
        attempt.began = self._lanes.begins(attempt, deadline)
        began = time.monotonic()
        try:
            await self._perform_beside(attempt, tasks)
        except BaseException as raised:  # noqa: BLE001 - cancelled in our own code
            if attempt.verdict is None and attempt.error is None:  # else it was over, and only had to clean up
                attempt.error = raised
        attempt.duration = time.monotonic() - began
        self._report(attempt)

    def _tell(self, task: JobTask, lane: int) -> None:
        """Its deadline has come: tell the job to end, once what was ready before in a busy loop has had its step."""
        self._lanes.told(lane)
        if not self._ticks:
            self._ticks = True
            self._loop.loop.call_later(_TICK, self._tick, time.monotonic())
        self._told.add(lane)
        self._loop.loop.call_soon(self._end_late, task)

    def _end_late(self, task: JobTask) -> None:
        if task.owner and not task.done():
            task.owner.is_late = True
            task.end()

    def _tick(self, before: float) -> None:
        """Show for how long the loop is free while jobs are told to end: the time that it is blocked is not theirs."""
        now = time.monotonic()
        self._lanes.free_for(min(now - before, 2 * _TICK))
        self._ticks = bool(self._told)
        if self._ticks:
            self._loop.loop.call_later(_TICK, self._tick, now)

    def lose(self, lanes: Iterable[int]) -> None:
        """On the loop: another worker may have the jobs in these lanes: tell them to end."""
        for lane in lanes:
            if lane not in self._lost and (task := self._tasks.get(lane)):
                self._lost.add(lane)
                task.end()

    def tasks(self, lane: int | None = None) -> Collection[object]:
        """As in ``Runner``. From any thread."""
        task = self._tasks.get(-1 if lane is None else lane)
        return [task, *(task.owner.left if task.owner else ())] if task else []

    def obeys(self, order: CancelOrder) -> bool:
        """Whether the job can end by itself. From any thread: the loop may be busy with another one."""
        return can_end(self._tasks.get(order.number))

    def cancel(self, orders: Iterable[CancelOrder]) -> None:
        """On the loop: these jobs have been cancelled: tell them to end, once each."""
        for order in orders:
            task = self._tasks.get(order.number)
            job = task.owner.job if task and task.owner else None
            if task and job and not job.cancelled:
                job.cancel(cancelled_in(job.payload, order.by), requeue=order.requeue)
                task.end()

    async def _perform_beside(self, attempt: JobAttempt, tasks: LaneTasks) -> None:
        """As ``_perform``."""
        job, plan = attempt.job, attempt.plan
        entered = self._hooks.enter(job) if HOOKS else None
        returned, task = None, None
        try:
            task = self._starter.task(job, plan, attempt.now, attempt.suspicions)
            if self._listeners.wants(JobProcessing):
                self._listeners.emit(JobProcessing(attempt.facts))
            returned = await self._called(task, plan, job, tasks)
        # Whatever a job raises, even SystemExit, ends the job, not the worker.
        except BaseException as raised:  # noqa: BLE001
            attempt.error = raised
            job.ends()  # as there
            self._lanes.may_end(attempt.number)
        if overran := tasks.overran():  # also if it swallowed that: it had no more time
            self._times_out(attempt)
        self._invoker.leave_if_forked(attempt.error)
        has_returned = attempt.error is None
        is_over = has_returned if job.verdict is None else isinstance(job.verdict, Delete)
        if is_over and not overran:
            attempt.verdict = _DELETE
            if plan.may_follow:
                self._note_success(attempt, task, returned)
            else:
                self._batch.succeeded(attempt.number)
        if task and has_returned and attempt.verdict is not None and (hook := task.after_succeeded):
            await self._hooks.wait_for(job, "after_succeeded", self._beside(plan, hook))
        if entered:
            self._hooks.leave(job, entered, attempt.error)
        if tasks.left:
            await self._clear(attempt, tasks)

    async def _called(self, task: Task, plan: Plan, job: Current, tasks: LaneTasks) -> object:
        """What the handler returns. Raises whatever it raises."""
        if plan.guard is None:
            return await self._awaited(task, plan, tasks)
        try:
            work, soft = self._awaited(task, plan, tasks), plan.guard.soft_timeout
            return plan.guard.kept(await (limited(work, soft, soft) if soft else work), job)
        except BaseException as error:
            plan.guard.judge(error, job)
            raise

    async def _awaited(self, task: Task, plan: Plan, tasks: LaneTasks) -> object:
        if plan.is_plain and not isinstance(task, Skipped):
            returned = await self._in_a_thread(partial(tasks.timed, task.run))
        else:
            returned = task.run()
        if not inspect.isawaitable(returned):
            return returned
        tasks.thread_ended = math.inf  # the job goes on, on the loop
        return await around_beside(returned)

    async def _in_a_thread(self, run: Callable[[], object], threads: LaneThreads | None = None) -> object:
        """Run it in a thread, in the job's context. A thread cannot be cancelled, so this waits for its end."""
        future = self._loop.loop.run_in_executor(threads or self._threads, self._outcome, run)
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
        returned, error = future.result()
        if error is not None:
            raise error
        return returned

    def _outcome(self, run: Callable[[], object]) -> tuple[object, BaseException | None]:
        """In a thread. The error is returned, since a future cannot hold every exception."""
        try:
            returned, error = with_new_connections(run), None
        except BaseException as raised:  # noqa: BLE001 - the job's own
            returned, error = None, raised
        self._invoker.leave_if_forked(error)
        return returned, error

    def _beside(self, plan: Plan, hook: Callable[[], object]) -> Callable[[], object]:
        """The hook; that of a plain function in a thread, since it blocks as much."""
        return partial(self._hook_in_a_thread, hook) if plan.is_plain else hook

    async def _hook_in_a_thread(self, hook: Callable[[], object]) -> object:
        returned = await self._in_a_thread(hook, self._hook_threads)
        return await returned if inspect.isawaitable(returned) else returned

    async def _clear(self, attempt: JobAttempt, tasks: LaneTasks) -> None:
        """End what the job has left. What refuses to end runs on, in no lane."""
        # A job past its deadline has half of the grace, or the alarm would end its neighbours for what it has left.
        is_late = tasks.deadline is not None and tasks.deadline.passed
        until = tasks.deadline.at + self._grace / 2 if tasks.deadline and is_late else math.inf
        left = await tasks.clear(max(min(_CANCEL_TIMEOUT, until - time.monotonic()), 0.0))
        if left.cancelled:
            self._listeners.emit(TasksLeft(attempt.facts, left.cancelled, len(left.refusing)))

    def _ended(self, attempt: JobAttempt, tasks: LaneTasks, task: asyncio.Task[Any]) -> None:
        """Nothing of it runs any more."""
        if not attempt.began:
            attempt.error = asyncio.CancelledError("cancelled before it had begun")
        lane = attempt.number
        tasks.end()
        if tasks.deadline:
            self._deadlines.end(tasks.deadline)
        del self._tasks[lane]
        self._told.discard(lane)
        attempt.is_lost = lane in self._lost
        self._lost.discard(lane)
        if tasks.has_threads:
            self._thread_count.over(tasks)
        self._lanes.over(lane)
        self._loop.has_ended(attempt)

    def _report(self, attempt: JobAttempt) -> None:
        """Emit how it ended; print what it left of a line."""
        if attempt.job.cancelled or is_of(LeaseEnded, attempt.error) or has_left(attempt.job, attempt.error):
            pass  # it is reported once that is settled
        elif attempt.error is not None:
            self._listeners.emit(JobExceptionOccurred(attempt.facts, attempt.error, attempt.duration))
        elif self._listeners.wants(JobProcessed):
            self._listeners.emit(attempt.processed)
        if INCOMPLETE:
            log_incomplete_here()

    def _times_out(self, attempt: JobAttempt) -> None:
        """It has run past its deadline, and was cancelled."""
        name = f"{attempt.payload.name} (attempt {attempt.payload.attempts})"
        trace = text_of(attempt.error) if attempt.error else ""
        error = TimedOut(f"{name} ran past its deadline: cancelled after {attempt.plan.timeout:g} s", trace)
        killed = KilledAttempt(attempt.began, time.time(), attempt.payload.extra, is_cancelled=True)
        attempt.error, attempt.cause = error, JobTimedOut(attempt.facts, trace, killed)
        # The guard has judged the cancellation, not an error of the job.
        attempt.job.is_final, attempt.job.retry_after = False, None

    def _call_after_failed(self, payload: Payload, queue: str, plan: Plan, error: BaseException) -> None:
        """Call ``after_failed`` on the loop. The job is already over: its lane may hold another one."""
        job = Current(payload, queue)
        task = self._starter.task_of(job, plan)
        if task:
            hook = partial(
                self._hooks.wait_for, job, "after_failed", self._beside(plan, partial(task.after_failed, error))
            )
            self.hooks[id(job)] = None
            self.longest = max(self.longest, plan.timeout or math.inf)
            self._loop.loop.call_soon_threadsafe(self._begin_hook, hook, job, plan.timeout)

    def _begin_hook(self, hook: Callable[[], Any], job: Current, timeout: float) -> None:
        """On the loop. It has as much time as its job had."""
        loop, context, lanes = self._loop.loop, self.context.copy(), self._lanes.lanes
        context.run(set_job_beside, job)
        # In no lane: no job is to blame for it.
        task = self.hooks[id(job)] = asyncio.Task(Stepped(hook(), lanes, lanes.hook), loop=loop, context=context)
        limit = loop.call_later(timeout, task.cancel) if timeout else None
        task.add_done_callback(partial(self._hook_ended, job, limit), context=context)

    def _hook_ended(self, job: Current, limit: asyncio.TimerHandle | None, task: asyncio.Task[Any]) -> None:
        if limit:
            limit.cancel()
        if INCOMPLETE:
            log_incomplete_here()
        del self.hooks[id(job)]
        self._loop.bell.ring()
