"""What every worker does between its start and its end: rounds, until there is a reason to leave."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from queuepool.board.board import State
from queuepool.errors import StoreDown, StoreError
from queuepool.events import Looping, WorkerContinued, WorkerPaused, WorkerStarting, WorkerStopping
from queuepool.unix.originals import sleep
from queuepool.worker.attempt import Runner
from queuepool.worker.context import WorkerContext
from queuepool.worker.job_lines import JobLines
from queuepool.worker.limits import StopReason
from queuepool.worker.live_stacks import LiveStacks
from queuepool.worker.prefetch import Membership, Reports

#: seconds between checks whether a new pool's steward has read the control keys
_CONTROL_TICK = 0.01


class Rounds:
    """Those of one worker. What a round is differs between one job at a time and many side by side."""

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
        self._reports = Reports(context.listeners, context.outage)
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
        """From a signal's handler, at any moment of a job's."""
        self._hear()
        if self._live_stacks:
            self._live_stacks.look()

    def _hear(self) -> None:
        """From a signal's handler: somebody may have cancelled a job that runs."""
        self._runner.look_for_an_order()

    def _call_deferred_hooks(self) -> None:
        """Call the hooks of jobs that failed when their worker died; the board shows when there may be one."""
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
        """The store refuses any verdict on the job that has ended."""

    def _make_way(self) -> None:
        """For a deferred hook, which may take long."""

    def _await_hooks(self) -> None:
        """Let those end that have been called."""


class Gate:
    """Whether the worker may take jobs: paused by signal, maintenance, paused queues, or a listener's veto.

    Asked at the start of every round. Emits an event when it closes, when the reason changes and when it opens.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._queues = context.pool.queues
        self._force = context.pool.force
        self._control_state = context.control_state
        self._signals = context.signals
        self._listeners = context.listeners
        self.closed_by = ""

    def queues(self) -> tuple[str, ...]:
        """The queues to serve in this round; empty if no work is allowed. Raises ``StoreDown``."""
        self._control_state.refresh()
        paused = self._control_state.paused()
        queues = tuple(queue for queue in self._queues if queue not in paused) if paused else self._queues
        why = self._why_closed(queues)
        if why != self.closed_by:
            self._listeners.emit(WorkerPaused(why) if why else WorkerContinued())
            self.closed_by = why
        return () if why else queues

    def _why_closed(self, queues: tuple[str, ...]) -> str:
        if self._signals.paused:
            return "signal"
        if self._control_state.is_down() and not self._force:
            return "maintenance"
        if not queues:
            return "all queues are paused"
        if self._listeners.wants(Looping) and not self._listeners.emit(Looping(queues)):
            return "a listener"
        return ""
