"""Settle at once all jobs that a dead worker held, also on boards that a killed master left."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from queuepool import events
from queuepool.board.blame import Blame
from queuepool.board.board import Board, Killed, Role, Slot, State
from queuepool.board.boot_report import BootReport
from queuepool.board.cancel_orders import CancelOrder, carried_out, order_for
from queuepool.board.held_jobs import HeldJob, Stage, still_held
from queuepool.board.meters import AS_LOST, DONE, FAILED, GIVEN_BACK, RELEASED
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import boot_problem, present_boot_problem
from queuepool.errors import AttemptLost, PartDown, StoreDown, StoreError
from queuepool.payload.lease import Lease
from queuepool.settlement import deferred_hooks
from queuepool.settlement.cancelled import cancelled_in
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Delete, Fail, Verdict, judge, judge_suspect
from queuepool.steward.culprits import Charge
from queuepool.steward.death import ASKED, WITHOUT_A_VERDICT, Death, OpenAttempt
from queuepool.steward.leases import LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import QueueStore
from queuepool.unix import stray_processes
from queuepool.unix.exit_codes import BOOT

#: seconds between rounds without a wake-up
_PERIOD = 1.0
_log = logging.getLogger("queuepool")


class SettleDead:
    """Settles dead workers. The master wakes the steward for each death; the period covers a lost wake-up."""

    def __init__(
        self,
        orphaned_boards: OrphanedBoards,
        runtime: RuntimeDir,
        store: QueueStore,
        settler: Settler,
        lost_replies: LostReplies,
        blame: Blame,
        grace: float,
        ask_again: Callable[[], object] | None = None,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        """``ask_again``: as in ``Stores``. ``between`` is called after each death: many may take long."""
        self._orphaned_boards = orphaned_boards
        self._runtime = runtime
        self._store = store
        self._settler = settler
        self._lost_replies = lost_replies
        self._blame = blame
        self._grace = grace
        self._ask_again = ask_again
        self._between = between
        self._last_boot = BootReport("")
        #: why some jobs cannot be settled now
        self._away: list[PartDown] = []

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        board = self._orphaned_boards.own
        # The incarnation is read first: the master may free the slot and reuse it.
        workers = [(slot.incarnation, slot) for slot in board.of(Role.WORKER, Role.TEMPLATE)]
        # Each notes when it was found, so make all before settling the first: the store may be away for long.
        deaths = [Death(board, slot, life, self._grace) for life, slot in workers if _is_unsettled(life, slot)]
        if deaths and self._ask_again and _is_at_its_end(board):
            self._ask_again()
        for death in deaths:
            self._try(death)
        _forget_boot(board)
        for orphaned in self._orphaned_boards.boards():
            with self._blame.during(orphaned.path.name):
                self._settle_orphaned(orphaned)
        away, self._away = self._away, []
        if away:
            raise away[0]
        return _PERIOD

    def _settle_orphaned(self, board: Board) -> None:
        """Settle an orphaned board's dead workers; living ones finish their jobs. Remove the board once settled."""
        for slot in board.of(Role.WORKER, Role.TEMPLATE):
            if slot.settled_incarnation != slot.incarnation and not board.has_living(slot):
                if board.name.is_of_this_system:
                    stray_processes.kill_all_of(board.mark(slot))
                self._try(Death(board, slot, slot.incarnation, self._grace))
        if board.is_settled:
            board.unlink()

    def _try(self, death: Death) -> None:
        """Settle what the process held, unless that kept crashing the steward."""
        if self._blame.is_deadly(str(death)):
            _log.error("skipping %s: it kept crashing the steward; its jobs wait for their leases to end", death)
            death.count([])
            death.slot.settled_incarnation = death.incarnation
            return
        with self._blame.during(str(death)), self._parted():
            self._settle(death)
        self._between()

    def _settle(self, death: Death) -> None:
        """Settle what the process held; mark the slot as settled before emitting events.

        After each step that may take long, ``_between`` runs the chores that cannot wait; not after one that raised
        ``StoreDown``, as they would wait for the same silent store.
        """
        held = death.held or []
        if held:
            death.rule()  # on all of them, before the first settlement takes its lane from the evidence
        self._give_back_lost_replies(death, held)
        self._between()
        before = len(self._away)
        for one in held:
            if one.stage == Stage.RUNNING:
                self._alone(death, one, self._settle_running)
                self._between()
        self._settle_the_rest(death, held)
        if len(self._away) > before:
            return  # what has been settled is marked; the rest is settled as soon as its node answers
        self._note(death, held)
        death.count(held)
        death.slot.settled_incarnation = death.incarnation
        self._settler.emit_noted()

    def _give_back_lost_replies(self, death: Death, held: Sequence[HeldJob]) -> None:
        slot = death.slot
        # A time from another boot means nothing now, and the tag may be a living worker's.
        if slot.reserve_sent_at and death.held is not None and death.board.name.is_of_this_boot:
            with self._refused(slot.queue):
                self._lost_replies.take(slot.tag, slot.reserve_sent_at, still_held(held))

    def _alone(self, death: Death, one: HeldJob, settle: Callable[[Death, HeldJob], object]) -> None:
        """Settle one job. If the store refuses it, or it keeps crashing the steward, its lease ends by itself."""
        what = f"{death} job {one.number}"
        if self._blame.is_deadly(what):
            _log.error("skipping %s: it kept crashing the steward; it waits for its lease to end", what)
            return
        with self._blame.during(what), self._refused(one.lease.queue):
            settle(death, one)

    @contextmanager
    def _refused(self, queue: str) -> Iterator[None]:
        """Note what the store refuses: one broken key must not delay settling the others."""
        try:
            with self._parted():
                yield
        except StoreDown:
            raise
        except StoreError as error:
            self._settler.note(events.StoreRefused(queue, str(error)))

    @contextmanager
    def _parted(self) -> Iterator[None]:
        """Note that a node is away: what is on the others must not wait for it."""
        try:
            yield
        except PartDown as error:
            self._away.append(error)

    def _settle_running(self, death: Death, one: HeldJob) -> None:
        death.ends(one, self._settle_attempt(death, one))
        death.slot.mark(one.number, Stage.SETTLED)

    def _settle_attempt(self, death: Death, one: HeldJob) -> int:
        """Settle an interrupted attempt; returns how it ended, for the meters."""
        slot = death.slot
        if slot.killed == Killed.LEASE and not slot.lanes:
            return self._lose(death, one)
        attempt, culprits = death.attempt(one), death.culprits
        if order := order_for(slot, one.number):
            return self._cancel(death, attempt, order)
        # If the worker went on meanwhile, the cancellation has hit another attempt than the one that was meant.
        # A worker that has left in order was not killed by the job: its store was away when that ended, or left.
        if slot.killed in ASKED or slot.has_left or (culprits and one.number in culprits.innocent):
            self._give_back(attempt)
            return GIVEN_BACK
        if culprits and culprits.charged.get(one.number) == Charge.LOST:
            return self._lose(death, one)
        error = death.error_of(death.ran(one))
        if culprits and one.number in culprits.suspects:
            verdict = self._settler.unanswered_verdict(attempt.lease) or judge_suspect(
                error, attempt.payload.attempts, attempt.policy, self._store.now()
            )
            settlement = death.settlement(attempt, error, verdict)._replace(tally="suspects")
        else:
            settlement = death.settlement(attempt, error, self._rule(error, attempt))
        return self._carry_out(settlement, error)

    def _lose(self, death: Death, one: HeldJob) -> int:
        """Settle nothing: another worker may have the job, or it is staged when the lease ends."""
        if self._settler.attempts is not None:
            attempt = death.attempt(one)
            self._settler.loses(attempt.lease, attempt.payload, attempt.run)
        return WITHOUT_A_VERDICT

    def _carry_out(self, settlement: Settlement, error: AttemptLost) -> int:
        if not self._settler.settle(settlement):
            return WITHOUT_A_VERDICT
        if isinstance(settlement.verdict, Fail):
            deferred_hooks.leave(self._runtime.path, self._runtime.store, settlement.lease, error)
            self._orphaned_boards.own.header.note_deferred_hook()
            return AS_LOST + FAILED
        return AS_LOST + RELEASED

    def _give_back(self, attempt: OpenAttempt, cause: events.Event | None = None) -> bool:
        """Give back a job that had begun, but write its state first: afterwards another worker may have the job."""
        lease = attempt.lease
        if state := self._settler.states.given_back(attempt.payload, lease.queue):
            with self._refused(lease.queue):
                self._store.show([lease], [state])
        return self._settler.give_back(lease, cause, attempt.payload, attempt.run)

    def _cancel(self, death: Death, attempt: OpenAttempt, order: CancelOrder) -> int:
        """It was cancelled, however its worker died in the end."""
        error = cancelled_in(attempt.payload, order.by)
        settlement = death.settlement(attempt, error, Fail(error))
        if order.requeue:
            is_back = self._give_back(attempt, settlement.cause)
            way = GIVEN_BACK if is_back else WITHOUT_A_VERDICT
        else:
            way = self._carry_out(settlement, error)
        if way != WITHOUT_A_VERDICT:
            carried_out(death.slot, order)
        return way

    def _rule(self, error: AttemptLost, attempt: OpenAttempt) -> Verdict:
        # After an unanswered call, keep the verdict: that call may have incremented the tallies used here.
        return self._settler.unanswered_verdict(attempt.lease) or judge(
            error,
            attempt.payload.attempts,
            attempt.policy,
            self._store.tallies(attempt.payload.id, attempt.lease.queue),
            self._store.now(),
            job_id=attempt.payload.id,
        )

    def _settle_the_rest(self, death: Death, held: Sequence[HeldJob]) -> None:
        """Delete done jobs and give back those not started, in order: one call per queue, as a key may be broken."""
        alike: dict[tuple[Stage, str], list[HeldJob]] = {}
        # The job being read precedes those not started: given back last, it is at the head again.
        for one in sorted(held, key=lambda one: one.stage == Stage.READING):
            alike.setdefault((one.stage, one.lease.queue), []).append(one)
        for (stage, _), jobs in alike.items():
            with self._parted():
                self._settle_alike(death, stage, jobs)
            self._between()

    def _settle_alike(self, death: Death, stage: Stage, jobs: Sequence[HeldJob]) -> None:
        """Settle these of one queue, unless they have run."""
        if stage == Stage.DONE:
            self._finish(death, jobs)
        elif stage == Stage.RESERVED:
            self._settler.give_back_unstarted([one.lease for one in jobs])
        elif stage == Stage.READING:
            for one in jobs:
                self._blame_reading(death, one)
        else:
            return
        for one in jobs:
            if stage == Stage.DONE:
                death.ends(one, DONE)
            death.slot.mark(one.number, Stage.SETTLED)

    def _blame_reading(self, death: Death, one: HeldJob) -> None:
        culprits = death.culprits
        if culprits and culprits.charged.get(one.number) == Charge.LOST:
            return
        # A kill from outside comes at any moment: being read just then proves nothing if other jobs ran.
        is_chance = culprits and culprits.is_one_of_many(one.number) and not death.is_a_fault
        if is_chance or (culprits and one.number in culprits.innocent):
            self._settler.give_back_unstarted([one.lease])
        else:
            self._settler.blame(one.lease)

    def _finish(self, death: Death, jobs: Sequence[HeldJob]) -> None:
        """Delete done jobs. Something follows from members of flows among them, and from one that was to be settled."""
        followed = [one for one in jobs if self._is_followed(death, one)]
        self._settler.delete([self._recorded(death, one) for one in jobs if one not in followed])
        for one in followed:
            self._alone(death, one, self._finish_followed)

    def _is_followed(self, death: Death, one: HeldJob) -> bool:
        return bool(death.ran(one).track) or death.has_steps(one) or self._settler.may_follow(one.lease.receipt)

    def _recorded(self, death: Death, one: HeldJob) -> Lease:
        """The lease of a done job, with the record of its attempt if that is kept."""
        attempts = self._settler.attempts
        return attempts.done_by(one.lease, death.by) if attempts else one.lease

    def _finish_followed(self, death: Death, one: HeldJob) -> None:
        lease, payload, policy, run = death.attempt(one)
        self._settler.settle(Settlement(lease, payload, Delete(), locks=policy.locks, run=run))

    def _note(self, death: Death, held: Sequence[HeldJob]) -> None:
        slot = death.slot
        if slot.killed in ASKED or (not held and (slot.has_left or not slot.pid)):
            return  # told to stop, exited cleanly, or never forked
        event: events.Event = events.ProcessDied(Role(slot.role).name.lower(), slot.number, slot.pid, death.cause)
        if slot.state == State.STARTING and death.status is not None:
            report = death.report
            death.board.header.note_failed_boot(slot.generation, report.problem)
            if death.code in (BOOT, -signal.SIGALRM):
                event = self._boot_failed(slot, report)
        self._settler.note(event)

    def _boot_failed(self, slot: Slot, report: BootReport) -> events.BootFailed:
        """The event for a boot that the modules made fail; with a traceback only if it differs from the last one."""
        is_new, self._last_boot = report != self._last_boot, report
        problem, trace = report if is_new else BootReport("")
        return events.BootFailed(slot.number, trace, problem)


def _is_at_its_end(board: Board) -> bool:
    """Whether the master waits only for what is left to settle, and not for long."""
    return board.header.state == State.DRAINING and all(slot.dead for slot in board.of(Role.WORKER))


def _forget_boot(board: Board) -> None:
    """Forget an earlier boot problem once all workers have become ready."""
    if boot_problem(board.header) and not present_boot_problem(board):
        board.header.note_failed_boot(0, "")


def _is_unsettled(incarnation: int, slot: Slot) -> bool:
    return bool(slot.dead and slot.settled_incarnation != incarnation and not slot.holds_nothing)
