"""The rounds of a worker that runs many jobs side by side, on an event loop.

The store is asked in the main thread, for many jobs at a time; another thread, with a connection of its own, waits for
new ones. Each round settles what has ended, then reserves for the lanes that are free.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from queuepool.board import cancel_orders
from queuepool.board.board import State
from queuepool.board.boot_report import too_late
from queuepool.config.values import MAX_AHEAD
from queuepool.errors import PartDown, StoreDown, StoreError
from queuepool.events import JobReserving, LeaseLost
from queuepool.jobs.around import LIFESPANS
from queuepool.jobs.current_job import set_progress
from queuepool.log import JobLines
from queuepool.log.captured import INCOMPLETE, log_incomplete
from queuepool.payload.lease import Lease
from queuepool.settlement.facts import facts_of_unread
from queuepool.stores.contract import QueueStore
from queuepool.unix import fork
from queuepool.worker.context import StopReason, WorkerContext
from queuepool.worker.deadlines import Deadlines
from queuepool.worker.django_support import renew_connections
from queuepool.worker.job_attempt import JobAttempt
from queuepool.worker.lane_board import LaneSlotWriter
from queuepool.worker.lane_endings import LaneEndings
from queuepool.worker.lane_loop import Bell, LaneLoop, Waiter, new_loop
from queuepool.worker.lane_runner import LaneRunner
from queuepool.worker.lane_tasks import end_copies, lane_of, make_task
from queuepool.worker.lifespans import Lifespans
from queuepool.worker.loop import Rounds
from queuepool.worker.loop_watch import LoopWatch, Silence
from queuepool.worker.turns import turns_of

#: seconds between two requests: jobs end meanwhile that the next one deletes and replaces
_GAP = 0.001
#: seconds after which a round looks at signals and limits, whatever happens
_LONGEST = 1.0
#: seconds between checks for the steward's orders about running jobs, and for a job that holds up the others
_LOOK = 0.25
#: seconds, least and most, for which jobs wait for a loop that is held up by code of no job
_LEAST_PATIENCE, _MOST_PATIENCE = 5.0, 60.0


class LaneWorker(Rounds):
    """Reserves, runs and settles jobs until it has a reason to leave, and its last job is over."""

    _runner: LaneRunner
    _slot_writer: LaneSlotWriter

    def __init__(self, context: WorkerContext, waits_in: QueueStore) -> None:
        assert isinstance(context.slot_writer, LaneSlotWriter)
        self._bell = Bell()
        self._loop = LaneLoop(new_loop(context.pool.loop), self._bell)
        lanes = context.slot_writer.batch.lanes
        self._loop.loop.set_task_factory(partial(make_task, lanes))
        deadlines = Deadlines(self._loop.loop, context.pool.grace, context.slot_writer.arm_at)
        job_lines = JobLines()
        super().__init__(context, LaneRunner(context, job_lines, self._loop, deadlines), job_lines)
        self._batch = context.slot_writer.batch
        self._settler = context.settler
        self._endings = LaneEndings(self._batch, self._runner, self._settler, self._reports)
        self._retry_after = context.pool.connection.retry_after
        silence = Silence(self._loop.loop.call_soon_threadsafe)
        self._watch = LoopWatch(lanes, context.listeners, silence, end=context.slot_writer.end_at_once)
        self._lifespans = Lifespans(self._loop, self._runner.context)
        self._waiter = Waiter(waits_in, self._bell)
        self._turns = turns_of(context.pool.queues, context.pool.weights)
        self._served: Sequence[str] = ()
        #: jobs that were taken and have not yet begun
        self._taken: deque[tuple[int, Lease]] = deque()
        #: whether a job runs that may have killed its workers
        self._suspect_runs = False
        #: how many attempts have been handed to the loop and are not over
        self._open = 0
        self._sent_at = self._looked_at = self._tried_at = 0.0
        self._last, self._is_empty = 1, False
        context.outage.meanwhile, context.outage.leaves_parts = self._meanwhile, True
        set_progress(self._progress)
        end_copies()
        self._loop.start(self._batch.runs_in)

    def run(self) -> StopReason:
        """As in every worker, within the registered lifespans. Raises ``BootFailure`` too."""
        if LIFESPANS:
            self._begin_lifespans()
        try:
            return super().run()
        except BaseException:
            self._batch.fails()  # the loop goes on, and the job that has the CPU there is not the cause
            raise
        finally:
            self._slot_writer.alive()
            self._lifespans.leave()

    def _begin_lifespans(self) -> None:
        """This is still the boot: a stop ends it at once, and the alarm if it takes too long."""
        self._signals.let_end()
        self._slot_writer.boots(too_late("@lifespan", self._pool.boot_timeout, "start"), self._pool.boot_timeout)
        try:
            self._lifespans.enter()
        finally:
            self._slot_writer.has_booted()
            self._signals.listen()

    def _progress(self, fraction: float, note: str) -> None:
        """Show the progress of the job whose code runs here, on the loop or in a thread."""
        if (lane := lane_of()) is not None:
            self._batch.progress(lane, fraction, note)

    def _round(self) -> None:
        self._settle_or_report()
        queues = self._gate.queues()
        if (self._taken or self._batch.waiting_suspects) and self._give_back(but=queues):
            self._begin_taken()  # not those of a closed gate
        self._ask(queues)

    def _ask(self, queues: tuple[str, ...]) -> None:
        """The next request, or a wait until it is due."""
        self._call_deferred_hooks()
        self._slot_writer.show_jobs(self._open, State.PAUSED if self._gate.closed_by else State.IDLE)
        if queues != self._served:
            self._endings.delete_done()  # a reserve can settle only what came from the queues it serves
            self._served, self._is_empty = queues, False
        now, room = time.monotonic(), self._room() if queues else 0
        self._look(now)
        if self._endings.away and now - self._tried_at >= _LOOK:
            self._endings.try_again()
            self._tried_at = time.monotonic()
        self._look_at_waiter(queues if room else ())
        timeout = _LOOK if self._open or self._endings.away else _LONGEST
        if room and not self._is_empty:
            timeout = self._sent_at + _GAP - now
            if timeout <= 0:
                self._reserve(queues, min(room, MAX_AHEAD, 2 * self._last))
                return
        elif self._batch.done:
            timeout = self._endings.done_at + _GAP - now
            if timeout <= 0:
                self._endings.delete_done()
                return
        self._rest(timeout)

    def _look_at_waiter(self, queues: Sequence[str]) -> None:
        """If a wait is over, reserve the job that ended it, or leave that to others if it was for other ``queues``."""
        if waited := self._waiter.ended():
            self._is_empty = False
            if waited != queues:
                self._waiter.pass_on(waited)

    def _look(self, now: float) -> None:
        """End the jobs that another worker may have, and report which job holds up the others."""
        if now - self._looked_at >= _LOOK:
            self._looked_at = now
            self._watch_loop(now)
            renew_connections()  # of listeners in this thread
            if lost := self._batch.lost():
                self._drop(lost)
                self._loop.loop.call_soon_threadsafe(self._runner.lose, lost)
            self._hear()

    def _hear(self) -> None:
        """As in every worker; also called now and then, as the signal may have come too early."""
        orders = self._batch.cancelled()
        for order in orders:
            cancel_orders.answer(self._slot_writer.slot, order, can_end=self._runner.obeys(order))
        if orders:
            fork.wake_parent(self._context.parent)
            with suppress(RuntimeError):  # a job has closed the loop, which ends the worker
                # The next job of a lane is handed over later, and so begins later.
                self._loop.loop.call_soon_threadsafe(self._runner.cancel, orders)

    def _meanwhile(self) -> None:
        """Called while the store is away and a request waits for it."""
        self._slot_writer.alive()
        self._watch_loop(time.monotonic())

    def _watch_loop(self, now: float) -> None:
        # Even while no job's code runs: a hook may take as long as its job.
        patience = min(max(self._runner.longest, _LEAST_PATIENCE), _MOST_PATIENCE) + self._pool.grace
        self._watch.look(now, patience, is_needed=bool(self._open or self._runner.hooks))

    def _drop(self, lanes: Sequence[int]) -> None:
        """Drop those of these jobs, which another worker may have, that have yet to begin: the loop will not end them.

        Their leases are about to end, and the master would then kill us, as it does for running jobs.
        """
        lost = {lane: lease for lane, lease in self._waiting() if lane in lanes}
        self._forget(lost)
        for lease in lost.values():
            self._listeners.emit(LeaseLost(facts_of_unread(lease)))

    def _room(self) -> int:
        most = self._limits.max_jobs - self._jobs if self._limits.max_jobs else math.inf
        return int(max(min(self._batch.room, most), 0))

    def _reserve(self, queues: tuple[str, ...], limit: int) -> None:
        """One round trip: delete what is done, take the next jobs, begin them."""
        self._store.reach()
        batch, membership = self._batch, self._membership
        unsure = batch.awaits_reply
        if unsure or membership.is_spent:
            membership.renew(batch.known)
        membership.look_again(batch.known)
        if self._listeners.wants(JobReserving):
            self._listeners.emit(JobReserving(queues))
        at = self._sent_at = membership.used_at = batch.requesting()
        done = [lease for _, lease in batch.done]
        order = self._turns.order(queues) if self._turns else queues
        try:
            reservation = self._store.reserve(order, membership.tag, limit, done)
        except PartDown:
            self._endings.delete_done()  # the others must not wait for what cannot be deleted
            if self._endings.away.isdisjoint(lease.queue for lease in done):
                raise
            return
        if self._turns:
            self._turns.took(reservation.leases)
        self._taken.extend(batch.replied(reservation.leases, at + self._retry_after))
        self._reports.emit(reservation, unsure=unsure)
        self._begin_taken()
        self._last = max(len(reservation.leases), 1)
        self._found_none = not reservation.leases
        self._is_empty = len(reservation.leases) < limit
        if self._is_empty:
            polls = self._reports.has_problems or self._store.polls
            block_for = self._pool.connection.block_for
            self._waiter.wait(queues, min(block_for, self._pool.sleep) if polls else block_for)

    def _begin_taken(self) -> None:
        """Hand over to the loop what was taken."""
        attempts: list[JobAttempt] = []
        try:
            for _ in range(len(self._taken)):
                self._prepare_next(attempts)
        finally:
            if self._batch.waiting_suspects and not self._suspect_runs:
                self._drop(self._batch.lost())
                if suspect := self._batch.next_suspect():
                    self._suspect_runs = True
                    attempts.append(suspect)
            if attempts:
                self._jobs += len(attempts)  # now, not at their ends: the last one may take long, and has a successor
                self._open += len(attempts)
                self._loop.begin(attempts, self._runner.begin)

    def _prepare_next(self, attempts: list[JobAttempt]) -> None:
        """Add the next of those that were taken to these, unless it does not begin now."""
        lane, lease = self._taken[0]
        try:
            attempt = self._runner.prepare(lease, lane)
        except PartDown:
            self._taken.rotate(-1)  # it waits for its node, and the others need not
            return
        except StoreDown:
            raise
        except StoreError as error:  # the store refuses what this job needs: its lease ends by itself
            self._reports.refused({(lease.queue, str(error))})
            attempt = None
        if attempt is None:
            self._batch.free(lane)
        else:
            (self._batch.waiting_suspects if attempt.suspect_since else attempts).append(attempt)
        self._taken.popleft()

    def _settle_ended(self) -> None:
        while self._loop.ended:
            attempt = self._loop.ended.popleft()
            self._open -= 1
            self._suspect_runs = self._suspect_runs and not attempt.suspect_since
            self._idle_since = time.monotonic()
            self._endings.conclude(attempt)

    def _rest(self, timeout: float) -> None:
        """Wait until a job ends, until one may be ready, or for ``timeout`` seconds."""
        self._job_lines.rest()
        if INCOMPLETE and not self._open:
            log_incomplete()  # of listeners, and of threads of no job
        self._signals.wait(lambda: self._bell.wait(timeout, self._is_due))

    def _is_due(self) -> bool:
        return bool(self._loop.ended) or self._waiter.is_over

    def _let_go(self) -> None:
        try:
            while not self._has_let_go():
                self._wait_for_jobs()
        except StoreDown:
            self._leave_to_the_steward()
            raise

    def _has_let_go(self) -> bool:
        """Let go what can be, and tell whether that is all; a stop does not wait for nodes that are away."""
        is_back = self._give_back()
        self._settle_or_report()
        self._endings.try_again()
        is_whole = is_back and not self._endings.away
        if self._signals.stop and not (self._open or is_whole):
            raise PartDown("a node is away: the steward settles its jobs")
        return is_whole and not self._open

    def _give_back(self, but: Sequence[str] = ()) -> bool:
        """Give back what was taken and has not begun, but not jobs of these queues; whether that could be done."""
        away = set[str]()
        if back := {lane: lease for lane, lease in self._waiting() if lease.queue not in but}:
            away = self._endings.away_from(self._settler.give_back_unstarted, [*back.values()])
            self._forget({lane: lease for lane, lease in back.items() if lease.queue not in away})
            self._settler.emit_noted()
        return not away

    def _waiting(self) -> list[tuple[int, Lease]]:
        """What was taken and has not begun."""
        return [*self._taken, *((one.number, one.lease) for one in self._batch.waiting_suspects)]

    def _forget(self, jobs: Mapping[int, Lease]) -> None:
        """These jobs, by lane, have not begun, and nothing is left to do for them."""
        self._taken = deque(one for one in self._taken if one[0] not in jobs)
        self._batch.waiting_suspects = deque(one for one in self._batch.waiting_suspects if one.number not in jobs)
        for lane in jobs:
            self._batch.free(lane)

    def _settle_or_report(self) -> None:
        self._endings.reporting(self._settle_ended)

    def _await_hooks(self) -> None:
        until = time.monotonic() + (self._pool.timeout or math.inf) + self._pool.grace
        while self._runner.hooks and time.monotonic() < until:
            self._slot_writer.alive()
            self._look(time.monotonic())
            self._signals.begin_round()
            self._bell.wait(_LONGEST, lambda: not self._runner.hooks)

    def _reclaim(self) -> None:
        if self._batch.awaits_reply:
            self._membership.renew(self._batch.known)

    def _leave_to_the_steward(self) -> None:
        # What they have done until then stays on the board, too. The master ends this worker if that takes too long.
        while self._open > len(self._loop.ended):
            self._wait_for_jobs()

    def _wait_for_jobs(self) -> None:
        self._slot_writer.alive()
        self._look(time.monotonic())
        self._look_at_waiter(())
        self._slot_writer.show_jobs(self._open, State.DRAINING)
        self._signals.begin_round()
        self._bell.wait(_LONGEST, lambda: self._loop.ended)
