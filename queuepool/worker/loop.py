"""A worker's loop: rounds, until there is a reason to leave.

In each round it checks the gate, then takes a job, runs and settles it, or waits for one. All workers have ``Rounds``
in common. ``Worker`` runs one job at a time; ``LaneWorker`` (``lane_worker``) runs many.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress

from queuepool.board.board import State
from queuepool.board.live_stack import LiveStacks
from queuepool.errors import StoreDown, StoreError
from queuepool.events import Looping, WorkerStarting, WorkerStopping
from queuepool.log import JobLines
from queuepool.payload.lease import Lease
from queuepool.unix.originals import sleep
from queuepool.worker.attempt import Runner
from queuepool.worker.context import Gate, StopReason, WorkerContext
from queuepool.worker.membership import Membership
from queuepool.worker.prefetch import Prefetch, Reports
from queuepool.worker.prefetch_size import PrefetchSize

#: seconds between checks whether a new pool's steward has read the control keys
_CONTROL_TICK = 0.01
#: seconds by which a store may end a wait late: Redis checks its waits ten times a second
_STORES_TICK = 0.1
#: seconds for which quick jobs run without checking signals, control state, limits and memory
_CHECK_INTERVAL = 0.001
#: the part of ``retry_after`` for which a reserve may wait at the server: the store counts the lease from the end of
#: the wait, but the worker, which does not know when that was, from before it; and the shortest ``retry_after``, in
#: seconds, that is long enough for that
_WAITS, _LONG_ENOUGH = 1 / 6, 3.0


class Rounds:
    """The rounds of one worker. A round differs between one job at a time and many side by side."""

    def __init__(self, context: WorkerContext, runner: Runner, job_lines: JobLines) -> None:
        self._context = context
        self._pool = context.pool
        self._store = context.store
        self._slot_writer = context.slot_writer
        self._signals = context.signals
        self._listeners = context.listeners
        self._control_state = context.control_state
        self._outage = context.outage
        self._limits = context.limits
        self._membership = Membership(context)
        self._reports = Reports(context.listeners, context.outage, context.store.flows)
        self._job_lines = job_lines
        self._runner = runner
        self._gate = Gate(context)
        self._jobs = 0
        self._deferred_hooks = -1
        self._found_none = False
        self._live_stacks: LiveStacks | None = None
        #: when the last job ended, or the work began (monotonic)
        self._idle_since = time.monotonic()

    def run(self) -> StopReason:
        """Work until there is a reason to leave, settle what is done, and return the reason.

        Raises ``StoreDown`` if a stop signal comes while the store is away.
        """
        if file := self._slot_writer.stacks:
            self._live_stacks = LiveStacks(self._slot_writer.slot, file, self._runner.tasks)
        self._signals.woken = self._woken
        self._membership.join()
        while not (self._control_state.are_known() or self._signals.stop):
            self._slot_writer.alive()
            self._signals.begin_round()
            self._signals.wait(lambda: sleep(_CONTROL_TICK))
        self._listeners.emit(WorkerStarting(self._slot_writer.slot.number))
        self._slot_writer.show(State.IDLE)
        while not (reason := self._reason_to_leave()):
            try:
                self._round()
            except StoreDown as error:
                self._outage.lost(error)
                if self._signals.stop:
                    self._leave_to_the_steward()
                    raise
                self._slot_writer.show(State.IDLE)  # a done job no longer runs; it waits to be reported
                self._outage.rest()
            except StoreError as error:
                self._abandon()
                self._reports.refused({("", str(error))})
                self._signals.wait(lambda: sleep(self._pool.sleep))
        self._let_go()
        with suppress(StoreError):  # the steward does it instead: the board shows the reserve
            self._reclaim()
        with suppress(StoreDown):  # only of a lone worker, which has no deferred hooks
            self._control_state.refresh()
        self._call_deferred_hooks()
        self._await_hooks()
        self._job_lines.sum_up(time.monotonic())
        grown = self._slot_writer.growth.most if reason is StopReason.MEMORY else ()
        self._listeners.emit(WorkerStopping(self._slot_writer.slot.number, reason, reason.code, self._jobs, *grown))
        return reason

    def _reason_to_leave(self) -> StopReason | None:
        self._slot_writer.alive()
        self._slot_writer.meter.look()
        self._signals.begin_round()
        if self._signals.stop:
            return StopReason.RESTART if self._control_state.is_replaced() else StopReason.STOPPED
        if os.getppid() != self._context.parent:
            return StopReason.ORPHANED
        self._runner.leave_if_broken()
        reached = self._limits.reached(
            jobs=self._jobs, rss=self._slot_writer.rss(), found_none=self._found_none, now=time.monotonic(),
            idle=self._idle(),
        )  # fmt: skip
        return reached or (StopReason.RESTART if self._control_state.must_leave() else None)

    def _woken(self) -> None:
        """Called by a signal's handler, possibly in the middle of a job."""
        if self._context.end_stale_calls:
            self._context.end_stale_calls()
        self._hear()
        if self._live_stacks:
            self._live_stacks.look()

    def _hear(self) -> None:
        """Called by a signal's handler: a running job may have been cancelled."""
        self._runner.look_for_an_order()

    def _call_deferred_hooks(self) -> None:
        """Call the hooks of jobs that failed when their worker died; the board shows when one may be waiting."""
        deferred_so_far = self._control_state.deferred_hooks()
        if self._deferred_hooks != deferred_so_far:
            self._deferred_hooks = deferred_so_far
            while hook := self._context.take_deferred_hook():
                self._make_way()
                self._runner.call_deferred_hook(hook.lease, hook.error)

    def _idle(self) -> float:
        """Seconds since the start or the last job."""
        return time.monotonic() - self._idle_since

    def _round(self) -> None:
        """Raises ``StoreError``."""
        raise NotImplementedError

    def _let_go(self) -> None:
        """Hold nothing any more."""
        raise NotImplementedError

    def _leave_to_the_steward(self) -> None:
        """A stop was asked for while the store is away: what is held stays on the board."""
        raise NotImplementedError

    def _reclaim(self) -> None:
        """Give back what a reserve without a reply took."""
        raise NotImplementedError

    def _abandon(self) -> None:
        """Give up the job that has ended: the store refuses any verdict on it."""

    def _make_way(self) -> None:
        """Make room for a deferred hook, which may take long."""

    def _await_hooks(self) -> None:
        """Let hooks that have been called end."""


class Worker(Rounds):
    """Reserves, runs and settles jobs, one at a time."""

    def __init__(self, context: WorkerContext, size: PrefetchSize) -> None:
        job_lines = JobLines()
        super().__init__(context, Runner(context, job_lines), job_lines)
        self._prefetch = Prefetch(context, self._membership, self._reports, size)
        self._reserves_waiting = _may_reserve_waiting(context)

    def _round(self) -> None:
        if self._context.run_chores:
            self._context.run_chores()
        queues = self._gate.queues()
        if not queues:
            # Like Laravel: a worker that leaves when there is no job does not wait for a pause to end.
            self._found_none = True
            self._pause(0.0 if self._limits.is_leaving_when_empty else min(self._pool.sleep, self._may_idle()))
            return
        self._call_deferred_hooks()
        lease = None if self._may_wait_first(queues) else self._prefetch.next_job(queues)
        if lease is None:
            self._wait(queues)
            self._found_none = not self._slot_writer.batch.waiting
        else:
            self._found_none = False
            self._work_on(lease)
            self._idle_since = time.monotonic()
            if self._pool.rest:
                self._pause(self._pool.rest)

    def _let_go(self) -> None:
        self._prefetch.let_go()

    def _leave_to_the_steward(self) -> None:
        self._prefetch.leaves_nothing_at_the_server()

    def _reclaim(self) -> None:
        self._prefetch.reclaim()

    def _abandon(self) -> None:
        self._slot_writer.meter.abandons(self._slot_writer.slot.since)

    def _work_on(self, lease: Lease | None) -> None:
        """Run this job, then held ones until the next checks are due; after a slow job they are due at once."""
        began = now = time.monotonic()
        next_check = began + (0.0 if self._listeners.wants(Looping) else _CHECK_INTERVAL)
        while lease:
            self._runner.run(lease)
            self._jobs += 1
            began, now = now, time.monotonic()
            self._prefetch.took(lease, now - began)
            if now >= next_check or self._signals.stop or self._limits.is_last(self._jobs):
                return
            lease = self._prefetch.next_held()

    def _make_way(self) -> None:
        self._let_go()  # no job waits behind it

    def _wait(self, queues: Sequence[str]) -> None:
        """Wait until a job may be ready. A lone worker also wakes for due jobs; in a pool the steward stages them."""
        if self._limits.is_leaving_when_empty:
            self._show_idle()
            return
        polls = self._reports.has_problems or self._store.polls
        timeout = min(self._pool.connection.block_for, self._pool.sleep if polls else math.inf, self._may_idle())
        self._slot_writer.waits(timeout)
        if not self._context.alone or self._prefetch.next_due is None or self._prefetch.next_due > timeout:
            self._block(queues, timeout)
        elif (blocking := self._prefetch.next_due - _STORES_TICK) > 0:
            self._block(queues, blocking)
        else:
            self._settle_down()
            self._pause(self._prefetch.next_due)

    def _block(self, queues: Sequence[str], timeout: float) -> None:
        """Wait in the store; if it can, it reserves the next job as soon as there is one."""
        if self._can_reserve_waiting:
            longest = self._pool.connection.retry_after * _WAITS
            self._prefetch.await_jobs(queues, min(timeout, longest), self._settle_down)
        else:
            self._settle_down()
            self._signals.wait(lambda: self._store.wait(queues, timeout))

    def _settle_down(self) -> None:
        """Do what is put off while there are jobs: now, while the worker is idle, rather than when a job has come."""
        self._show_idle()
        self._slot_writer.tidy()

    def _show_idle(self) -> None:
        self._slot_writer.show(State.IDLE)
        self._job_lines.rest()

    @property
    def _can_reserve_waiting(self) -> bool:
        # A listener that may forbid each job is asked before the job is reserved.
        return self._reserves_waiting and not (
            self._reports.has_problems or self._listeners.wants(Looping) or self._limits.is_leaving_when_empty
        )

    def _may_wait_first(self, queues: Sequence[str]) -> bool:
        """Whether to wait without asking first, as nothing was left; a lone worker asks: it also wakes for due jobs."""
        return not self._context.alone and self._prefetch.has_none_left(queues) and self._can_reserve_waiting

    def _may_idle(self) -> float:
        return self._limits.may_idle(self._idle())

    def _pause(self, seconds: float) -> None:
        self._prefetch.let_go()
        self._slot_writer.show(State.PAUSED if self._gate.closed_by else State.IDLE)
        self._signals.wait(lambda: sleep(seconds))


def _may_reserve_waiting(context: WorkerContext) -> bool:
    """Whether the store can wait and reserve in one call, and a lease that is shorter by the wait lasts long enough."""
    connection = context.pool.connection
    is_renewed = connection.renew or context.alone
    return context.store.reserve_waiting is not None and is_renewed and connection.retry_after >= _LONG_ENOUGH
