"""Settle at once every job that a dead worker held, also on boards that a killed master left."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from queuepool import events
from queuepool.board import boot_report
from queuepool.board.blame import Blame
from queuepool.board.board import Board, Killed, Role, Slot, State
from queuepool.board.boot_report import BootReport
from queuepool.board.held_jobs import HeldJob, Stage, still_held
from queuepool.board.meters import AS_LOST, FAILED, GIVEN_BACK, RELEASED
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import boot_problem, present_boot_problem
from queuepool.errors import AttemptLost, StoreDown, StoreError
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.settlement import deferred_hooks
from queuepool.settlement.run import NOT_RUN, Run
from queuepool.settlement.settler import Settler
from queuepool.settlement.verdict import Fail, Policy, Release, Verdict, judge
from queuepool.steward.count_dead import DeadWorker
from queuepool.steward.deaths import boot_of, cause_of, error_of, event_of, tally_of
from queuepool.steward.lost_replies import LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import QueueStore
from queuepool.unix import proc, stray_processes
from queuepool.unix.exit_codes import BOOT

_PERIOD = 1.0
_log = logging.getLogger("queuepool")


class SettleDead:
    """Reads the death records. The master wakes the steward for each; the period covers a lost wake-up."""

    def __init__(
        self,
        orphaned_boards: OrphanedBoards,
        runtime: RuntimeDir,
        store: QueueStore,
        settler: Settler,
        lost_replies: LostReplies,
        blame: Blame,
    ) -> None:
        self._orphaned_boards = orphaned_boards
        self._runtime = runtime
        self._store = store
        self._settler = settler
        self._lost_replies = lost_replies
        self._blame = blame
        self._last_boot = BootReport("")

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        board = self._orphaned_boards.own
        # The incarnation is read first: the master may free the slot and reuse it.
        workers = [(slot.incarnation, slot) for slot in board.of(Role.WORKER, Role.TEMPLATE)]
        dead = [one for one in workers if _is_unsettled(*one)]
        for _, slot in dead:
            DeadWorker(board, slot, None)  # notes when: the store may not answer for long
        for incarnation, slot in dead:
            self._try_slot(board, slot, incarnation, slot.status)
        _forget_boot(board)
        for orphaned in self._orphaned_boards.boards():
            with self._blame.during(orphaned.path.name):
                self._settle_orphaned(orphaned)
        return _PERIOD

    def _settle_orphaned(self, board: Board) -> None:
        """Settle an orphaned board's dead workers. Living ones finish their jobs; a settled board is removed."""
        for slot in board.of(Role.WORKER, Role.TEMPLATE):
            if slot.settled_incarnation != slot.incarnation and not board.has_living(slot):
                if board.name.is_of_this_system:
                    stray_processes.kill_all_of(board.mark(slot))
                self._try_slot(board, slot, slot.incarnation, slot.status if slot.dead else None)
        if board.is_settled:
            board.unlink()

    def _try_slot(self, board: Board, slot: Slot, incarnation: int, status: int | None) -> None:
        """Settle what the slot's process held, unless stewards have died of it."""
        what = f"{board.path.name} slot {slot.index} life {incarnation}"
        if self._blame.is_deadly(what):
            _log.error("%s is set aside: stewards have died of it; its jobs wait for their leases to end", what)
            DeadWorker(board, slot, proc.plausible(status)).count([])
            slot.settled_incarnation = incarnation
            return
        with self._blame.during(what):
            self._settle_slot(board, slot, incarnation, status)

    def _settle_slot(self, board: Board, slot: Slot, incarnation: int, status: int | None) -> None:
        """``status`` is ``None`` if no master saw the death. Marks the slot as settled before it emits events."""
        believed, trace, status = _read_held(slot), boot_report.text_in(board.trace(slot)), proc.plausible(status)
        held, dead = believed or [], DeadWorker(board, slot, status)
        try:
            # A time of another boot says nothing now, and its tag may be a living worker's.
            if slot.reserve_sent_at and believed is not None and board.name.is_of_this_boot:
                self._lost_replies.take(slot.tag, slot.reserve_sent_at, still_held(held))
            for number, one in enumerate(held):
                if one.stage == Stage.RUNNING:
                    dead.intends(self._settle(slot, one.lease, status, trace))
                    slot.hand.mark(number, Stage.SETTLED)
            self._settle_the_rest(slot, held)
        except StoreDown:
            raise
        except StoreError as error:
            # One broken key must not delay the other dead workers; this one's leases end by themselves.
            self._settler.note(events.StoreRefused(slot.queue, str(error)))
        self._note(board, slot, status, trace, held)
        dead.count(held)
        slot.settled_incarnation = incarnation
        self._settler.emit_noted()

    def _settle(self, slot: Slot, lease: Lease, status: int | None, trace: str) -> int:
        """Settle an attempt that was interrupted; returns the way in which it ended, for the meters."""
        if slot.killed == Killed.STOP:
            self._give_back(slot, lease)
            return GIVEN_BACK
        if slot.killed == Killed.LEASE:  # another worker may have the job, or the lease's end stages it
            return GIVEN_BACK + AS_LOST
        verdict = self._rule(slot, lease, error_of(slot, status, trace))
        return AS_LOST + {Fail: FAILED, Release: RELEASED}.get(type(verdict), GIVEN_BACK)

    def _give_back(self, slot: Slot, lease: Lease) -> None:
        """Return a job that had begun. Its state first: once it is back, another worker may have it."""
        if (slot.track or self._settler.may_follow(lease.receipt)) and (
            state := self._settler.states.given_back(_begun(slot, lease), lease.queue)
        ):
            self._store.show([lease], [state])
        self._settler.give_back(lease)

    def _settle_the_rest(self, slot: Slot, held: Sequence[HeldJob]) -> None:
        """Delete done jobs and give back those not started, in order: one call per queue, as one may be broken."""
        alike: dict[tuple[Stage, str], list[int]] = {}
        # The one that was being read comes before those not started, so it goes back to the head after them.
        for number, one in sorted(enumerate(held), key=lambda each: each[1].stage == Stage.READING):
            alike.setdefault((one.stage, one.lease.queue), []).append(number)
        for (stage, _), numbers in alike.items():
            leases = [held[number].lease for number in numbers]
            if stage == Stage.DONE:
                self._finish(slot, leases)
            elif stage == Stage.RESERVED:
                self._settler.give_back_unstarted(leases)
            elif stage == Stage.READING:
                self._settler.blame(leases[0])
            else:
                continue
            for number in numbers:
                slot.hand.mark(number, Stage.SETTLED)

    def _finish(self, slot: Slot, leases: Sequence[Lease]) -> None:
        """Delete done jobs. Those from which something follows were not to wait for it, so there is one at most."""
        plain = [lease for lease in leases if not (slot.track or self._settler.may_follow(lease.receipt))]
        self._settler.delete(plain)
        for lease in leases:
            if lease not in plain:
                payload = _begun(slot, lease)
                is_last = payload.id == slot.job_id
                locks = Policy.from_text(slot.policy).locks if is_last else None
                self._settler.finish(lease, payload, locks, _run_of(slot, done=True) if is_last else NOT_RUN)

    def _rule(self, slot: Slot, lease: Lease, error: AttemptLost) -> Verdict | None:
        """The verdict; ``None`` if the store refuses it."""
        payload, policy = _begun(slot, lease), Policy.from_text(slot.policy)
        # After an unanswered call the verdict stays: that call may have raised the tallies that a new one would use.
        verdict = self._settler.begun(lease) or judge(
            error,
            payload.attempts,
            policy,
            self._store.tallies(payload.id),
            self._store.now(),
            job_id=payload.id,
        )
        cause, tally = event_of(payload, lease.queue, error, slot.since or None), tally_of(error)
        if not self._settler.settle(lease, payload, verdict, error, tally, cause, policy.locks, _run_of(slot)):
            return None
        if isinstance(verdict, Fail):
            deferred_hooks.leave(self._runtime.path, self._runtime.store, lease, error)
            self._orphaned_boards.own.header.note_deferred_hook()
        return verdict

    def _note(self, board: Board, slot: Slot, status: int | None, trace: str, held: Sequence[HeldJob]) -> None:
        if slot.killed == Killed.STOP or (not held and (slot.exited_cleanly or not slot.pid)):
            return  # told to stop, exited cleanly, or never forked
        event: events.Event = events.WorkerDied(
            Role(slot.role).name.lower(), slot.number, slot.pid, cause_of(slot, status)
        )
        if slot.state == State.STARTING and status is not None:
            report = boot_of(slot, status, trace)
            board.header.note_failed_boot(slot.generation, report.problem)
            if os.waitstatus_to_exitcode(status) in (BOOT, -signal.SIGALRM):
                event = self._boot_failed(slot, report)
        self._settler.note(event)

    def _boot_failed(self, slot: Slot, report: BootReport) -> events.BootFailed:
        """The event for a boot that the modules failed; with the traceback only if it differs from the last one."""
        is_new, self._last_boot = report != self._last_boot, report
        problem, trace = report if is_new else BootReport("")
        return events.BootFailed(slot.number, trace, problem)


def _forget_boot(board: Board) -> None:
    """Once all workers have come to work, what kept one before them from it says nothing any more."""
    if boot_problem(board.header) and not present_boot_problem(board):
        board.header.note_failed_boot(0, "")


def _is_unsettled(incarnation: int, slot: Slot) -> bool:
    return bool(slot.dead and slot.settled_incarnation != incarnation and not slot.holds_nothing)


def _read_held(slot: Slot) -> list[HeldJob] | None:
    """All that it held; ``None`` if a job has overwritten it: then nothing is settled, and its leases end."""
    if slot.killed == Killed.OVERWRITTEN or not slot.is_plausible(inf, inf):
        return None
    try:
        Policy.from_text(slot.policy or "{}")
        held = slot.hand.held()
    except (ValueError, TypeError, OSError):
        return None
    if slot.killed == Killed.STOP:  # it has not died of what it read
        return [replace(one, stage=Stage.RESERVED) if one.stage == Stage.READING else one for one in held]
    return held


def _begun(slot: Slot, lease: Lease) -> Payload:
    """The payload of a held job; that its job is tracked may be known only by the board, of the one begun last."""
    payload = decode(lease.receipt, lease.attempts)
    return payload.tracked_for(slot.track) if payload.id == slot.job_id else payload


def _run_of(slot: Slot, *, done: bool = False) -> Run:
    """What the board says of the attempt; a result was lost with its worker."""
    problem = "its worker died before it was kept" if done else ""
    return Run(began=slot.since or None, progress=slot.fraction, note=slot.note, result_problem=problem)
