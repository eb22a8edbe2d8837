"""Settle at once all jobs that a dead worker held, also on boards that a killed master left."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import NamedTuple

from queuepool import events
from queuepool.board import boot_report
from queuepool.board.blame import Blame
from queuepool.board.board import Board, Killed, Role, Slot, State
from queuepool.board.boot_report import BootReport
from queuepool.board.held_jobs import HeldJob, Stage, still_held
from queuepool.board.lane_layout import key_of
from queuepool.board.lanes import HeldLane
from queuepool.board.meters import AS_LOST, DONE, FAILED, GIVEN_BACK, LOST, RELEASED, SlotMeters
from queuepool.board.running import NOTHING, Running
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import boot_problem, present_boot_problem
from queuepool.errors import AttemptLost, JobTimedOut, StoreDown, StoreError, WorkerDied
from queuepool.log.tracebacks import imports_part
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.settlement import deferred_hooks
from queuepool.settlement.facts import facts_of
from queuepool.settlement.run import NOT_RUN, Run
from queuepool.settlement.settler import Settlement, Settler
from queuepool.settlement.verdict import Delete, Fail, Policy, Verdict, judge, judge_suspect
from queuepool.steward.culprits import Charge, Culprits
from queuepool.steward.evidence import Rulings
from queuepool.steward.give_back import LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import QueueStore
from queuepool.unix import proc, stray_processes
from queuepool.unix.exit_codes import BOOT

#: seconds between rounds without a wake-up
_PERIOD = 1.0
#: for the meters: how an attempt without a verdict ends, why it was lost, and why its worker left
_LOST = AS_LOST + GIVEN_BACK
_LOSSES = {Killed.OVERDUE: "timeout", Killed.STALLED: "timeout", Killed.LEASE: "lease", Killed.MEMORY: "memory"}
_EXITS = {**_LOSSES, Killed.STOP: "stop", Killed.OVERWRITTEN: "crash"}
_log = logging.getLogger("queuepool")


class Death:
    """The end of one process: what it held, why it ended, and what that means for its jobs and its meters.

    What the process wrote may crash the steward, so it is read only when needed, and once.
    """

    def __init__(self, board: Board, slot: Slot, incarnation: int, rulings: Rulings) -> None:
        self.board = board
        self.slot = slot
        self.incarnation = incarnation
        self._rulings = rulings
        #: the wait status; ``None`` if no master saw the death
        self.status = proc.plausible(slot.status) if slot.dead else None
        self.code = 0 if self.status is None else os.waitstatus_to_exitcode(self.status)
        # On another pool's board the meters are out of reach: nothing is counted there.
        self._meters = SlotMeters(board.meters, slot)
        self._meters.note_death()

    def __str__(self) -> str:
        return f"{self.board.path.name} slot {self.slot.index} life {self.incarnation}"

    @cached_property
    def held(self) -> list[HeldJob] | None:
        """All jobs that it held; ``None`` if a job has overwritten them: they are not settled, and their leases end."""
        slot = self.slot
        if slot.killed == Killed.OVERWRITTEN or not slot.is_plausible(inf, inf):
            return None
        try:
            for ran in self._shown:
                Policy.from_text(ran.policy or "{}")
            held = slot.held()
        except (ValueError, TypeError, OSError):
            return None
        if slot.killed == Killed.STOP:  # not killed by what it read
            return [replace(one, stage=Stage.RESERVED) if one.stage == Stage.READING else one for one in held]
        return held

    def ran(self, job: HeldJob) -> Running:
        """What the board shows of the attempt at this held job, or else of one begun after it."""
        return next(
            (ran for ran in self._shown if ran.number == job.number), self._shown[-1] if self._shown else NOTHING
        )

    @cached_property
    def _shown(self) -> list[Running]:
        return self.slot.shown()

    def attempt(self, one: HeldJob) -> OpenAttempt:
        """The attempt at a held job that had begun; the board may know more of it than the payload does."""
        lease, ran = one.lease, self.ran(one)
        payload = decode(lease.receipt, lease.attempts)
        if one.stage != Stage.RUNNING and payload.id != ran.id:
            return OpenAttempt(lease, payload)
        # The result was lost with the worker.
        problem = "the worker died before the result was stored" if one.stage == Stage.DONE else ""
        run = Run(began=ran.since or None, progress=ran.progress, note=ran.note, result_problem=problem)
        # It may be one that the store refused to settle, with another begun after it: tracked as its payload says.
        tracked = payload.tracked_for(ran.track) if payload.id == ran.id else payload
        return OpenAttempt(lease, tracked, Policy.from_text(ran.policy or "{}"), run)

    def settlement(self, attempt: OpenAttempt, error: AttemptLost, verdict: Verdict) -> Settlement:
        """How to settle an attempt that the process's death interrupted."""
        payload = attempt.payload
        facts = facts_of(payload, attempt.lease.queue)
        killed = events.KilledAttempt(attempt.run.began, time.time(), payload.extra)
        cause: events.Event = events.JobLost(facts, str(error), error.trace, killed)
        tally = "crashes"
        if isinstance(error, JobTimedOut):  # Laravel counts a timeout as an exception
            cause, tally = events.JobTimedOut(facts, error.trace, killed), "exceptions"
        return Settlement(attempt.lease, payload, verdict, error, tally, cause, attempt.policy.locks, attempt.run)

    def error_of(self, ran: Running) -> AttemptLost:
        """The error of a job that the process ran."""
        name = f"{ran.job} (attempt {ran.attempt})"
        charge = self.culprits.charged.get(ran.number) if self.culprits else None
        if charge == Charge.BLOCKED:
            return WorkerDied(f"{name} blocked the event loop of its worker: {self.cause}", self._trace)
        if charge in (Charge.CRASHED, Charge.SUSPECTED) or (self.culprits and ran.number in self.culprits.suspects):
            return WorkerDied(f"{name}: its worker died: {self.cause}", self._trace)
        if charge == Charge.LATE or self.code == -signal.SIGALRM or self.slot.killed == Killed.OVERDUE:
            return JobTimedOut(f"{name} ran past its deadline: {self.cause}", self._trace)
        if self.slot.killed == Killed.STALLED:  # the job had ended, but was not settled in time
            return JobTimedOut(f"{name} had ended when its worker stalled: {self.cause}", self._trace)
        return WorkerDied(f"{name}: its worker died: {self.cause}", self._trace)

    @property
    def cause(self) -> str:
        """Why the process died, in words."""
        if reason := Killed(self.slot.killed).reason:
            return f"killed by the master: {reason}"
        return "unknown, its master was gone" if self.status is None else proc.cause_of(self.status)

    @property
    def report(self) -> BootReport:
        """Why the process did not become ready. Unlike a traceback, stacks have all frames; ours are removed here."""
        text = self._trace if self.code == BOOT else imports_part(self._trace)
        return boot_report.of_text(text, self.status or 0, self.slot.note)

    @cached_property
    def _trace(self) -> str:
        return boot_report.text_in(self.board.trace(self.slot))

    @property
    def culprits(self) -> Culprits | None:
        """Who answers for it; ``None`` for a worker that ran one job at a time."""
        return self._rulings.of(str(self), self.slot, self.code, self.status, lambda: self._trace)

    def ends(self, one: HeldJob, way: int) -> None:
        """This attempt is settled: its end is this one, before the board shows it."""
        if self.slot.lanes:
            self._count_lane(one.number, way)
        elif one.stage == Stage.RUNNING:
            self._meters.intend(way, self._loss)

    def _count_lane(self, lane: int, way: int) -> None:
        assert self.slot.lanes
        one = self._lanes[lane]
        if not one.counted and self._counted_last != (key := key_of(lane, one.turn)):
            names = (one.lease.queue, one.job)
            self._meters.count(key, names, way, self._loss if way >= LOST else "", self._meters.run_time(one.since))
        self.slot.lanes.mark_counted(lane)

    @cached_property
    def _counted_last(self) -> int:
        return self._meters.counted_last()

    @cached_property
    def _lanes(self) -> dict[int, HeldLane]:
        return {one.lane: one for one in self.slot.lanes.held()} if self.slot.lanes else {}

    def count(self, held: Sequence[HeldJob]) -> None:
        """Count its exit in the meters, and the attempt that it could not count itself. May be repeated.

        ``held``: what it held when it died.
        """
        if self._meters.is_open and not self.slot.lanes:
            for ran in self._shown:
                self._count_attempt(ran, held)
        self._meters.leave(self._exit)

    def _count_attempt(self, ran: Running, held: Sequence[HeldJob]) -> None:
        meters, stage = self._meters, held[ran.number].stage if 0 <= ran.number < len(held) else None
        if stage in (Stage.RESERVED, Stage.READING):  # it died before the attempt began on the board
            meters.forget()
            return
        if stage == Stage.DONE:
            meters.intend(DONE)
        elif meters.intended is None:  # the store refused the verdict, or the board was overwritten
            meters.intend(_LOST, self._loss)
        meters.end(meters.run_time(ran.since))

    @property
    def _loss(self) -> str:
        return "timeout" if self.code == -signal.SIGALRM else _LOSSES.get(Killed(self.slot.killed), "crash")

    @property
    def _exit(self) -> str:
        if reason := _EXITS.get(Killed(self.slot.killed)):
            return reason
        return {-signal.SIGALRM: "timeout", -signal.SIGKILL: "killed"}.get(self.code, "crash")


class OpenAttempt(NamedTuple):
    """An attempt that had begun when its worker died."""

    lease: Lease
    payload: Payload
    policy: Policy = Policy()
    run: Run = NOT_RUN


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
    ) -> None:
        self._orphaned_boards = orphaned_boards
        self._runtime = runtime
        self._store = store
        self._settler = settler
        self._lost_replies = lost_replies
        self._blame = blame
        self._rulings = Rulings(grace)
        self._last_boot = BootReport("")

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        board = self._orphaned_boards.own
        # The incarnation is read first: the master may free the slot and reuse it.
        workers = [(slot.incarnation, slot) for slot in board.of(Role.WORKER, Role.TEMPLATE)]
        # Each notes when it was found, so make all before settling the first: the store may be away for long.
        deaths = [Death(board, slot, life, self._rulings) for life, slot in workers if _is_unsettled(life, slot)]
        for death in deaths:
            self._try(death)
        _forget_boot(board)
        for orphaned in self._orphaned_boards.boards():
            with self._blame.during(orphaned.path.name):
                self._settle_orphaned(orphaned)
        return _PERIOD

    def _settle_orphaned(self, board: Board) -> None:
        """Settle an orphaned board's dead workers; living ones finish their jobs. Remove the board once settled."""
        for slot in board.of(Role.WORKER, Role.TEMPLATE):
            if slot.settled_incarnation != slot.incarnation and not board.has_living(slot):
                if board.name.is_of_this_system:
                    stray_processes.kill_all_of(board.mark(slot))
                self._try(Death(board, slot, slot.incarnation, self._rulings))
        if board.is_settled:
            board.unlink()

    def _try(self, death: Death) -> None:
        """Settle what the process held, unless that kept crashing the steward."""
        if self._blame.is_deadly(str(death)):
            _log.error("skipping %s: it kept crashing the steward; its jobs wait for their leases to end", death)
            death.count([])
            death.slot.settled_incarnation = death.incarnation
            return
        with self._blame.during(str(death)):
            self._settle(death)

    def _settle(self, death: Death) -> None:
        """Settle what the process held; mark the slot as settled before emitting events."""
        slot, held = death.slot, death.held or []
        try:
            # A time from another boot means nothing now, and the tag may be a living worker's.
            if slot.reserve_sent_at and death.held is not None and death.board.name.is_of_this_boot:
                self._lost_replies.take(slot.tag, slot.reserve_sent_at, still_held(held))
            for one in held:
                if one.stage == Stage.RUNNING:
                    death.ends(one, self._settle_running(death, one))
                    slot.mark(one.number, Stage.SETTLED)
            self._settle_the_rest(death, held)
        except StoreDown:
            raise
        except StoreError as error:
            # One broken key must not delay settling other dead workers; this one's leases end by themselves.
            self._settler.note(events.StoreRefused(slot.queue, str(error)))
        self._note(death, held)
        death.count(held)
        slot.settled_incarnation = death.incarnation
        self._rulings.forget(str(death))
        self._settler.emit_noted()

    def _settle_running(self, death: Death, one: HeldJob) -> int:
        """Settle an interrupted attempt; returns how it ended, for the meters."""
        slot = death.slot
        if slot.killed == Killed.LEASE and not slot.lanes:
            return _LOST  # another worker may have the job, or it is staged when the lease ends
        attempt, culprits = death.attempt(one), death.culprits
        if slot.killed == Killed.STOP or (culprits and one.number in culprits.innocent):
            self._give_back(attempt)
            return GIVEN_BACK
        if culprits and culprits.charged.get(one.number) == Charge.LOST:
            return _LOST
        error = death.error_of(death.ran(one))
        if culprits and one.number in culprits.suspects:
            verdict = self._settler.unanswered_verdict(attempt.lease) or judge_suspect(
                error, attempt.payload.attempts, attempt.policy, self._store.now()
            )
            settlement = death.settlement(attempt, error, verdict)._replace(tally="suspects")
        else:
            settlement = death.settlement(attempt, error, self._rule(error, attempt))
        if not self._settler.settle(settlement):
            return _LOST
        if isinstance(settlement.verdict, Fail):
            deferred_hooks.leave(self._runtime.path, self._runtime.store, attempt.lease, error)
            self._orphaned_boards.own.header.note_deferred_hook()
            return AS_LOST + FAILED
        return AS_LOST + RELEASED

    def _give_back(self, attempt: OpenAttempt) -> None:
        """Give back a job that had begun, but write its state first: afterwards another worker may have the job."""
        lease = attempt.lease
        if state := self._settler.states.given_back(attempt.payload, lease.queue):
            self._store.show([lease], [state])
        self._settler.give_back(lease)

    def _rule(self, error: AttemptLost, attempt: OpenAttempt) -> Verdict:
        # After an unanswered call, keep the verdict: that call may have incremented the tallies used here.
        return self._settler.unanswered_verdict(attempt.lease) or judge(
            error,
            attempt.payload.attempts,
            attempt.policy,
            self._store.tallies(attempt.payload.id),
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
            if stage == Stage.DONE:
                self._finish(death, jobs)
            elif stage == Stage.RESERVED:
                self._settler.give_back_unstarted([one.lease for one in jobs])
            elif stage == Stage.READING:
                self._blame_reading(death, jobs[0])
            else:
                continue
            for one in jobs:
                if stage == Stage.DONE:
                    death.ends(one, DONE)
                death.slot.mark(one.number, Stage.SETTLED)

    def _blame_reading(self, death: Death, one: HeldJob) -> None:
        if death.culprits and death.culprits.charged.get(one.number) == Charge.LOST:
            return
        if death.culprits and one.number in death.culprits.innocent:
            self._settler.give_back_unstarted([one.lease])
        else:
            self._settler.blame(one.lease)

    def _finish(self, death: Death, jobs: Sequence[HeldJob]) -> None:
        """Delete done jobs. At most one of them has something that follows: a worker settles such a job at once."""
        plain = [one.lease for one in jobs if not (death.ran(one).track or self._settler.may_follow(one.lease.receipt))]
        self._settler.delete(plain)
        for one in jobs:
            if one.lease not in plain:
                _, payload, policy, run = death.attempt(one)
                self._settler.settle(Settlement(one.lease, payload, Delete(), locks=policy.locks, run=run))

    def _note(self, death: Death, held: Sequence[HeldJob]) -> None:
        slot = death.slot
        if slot.killed == Killed.STOP or (not held and (slot.exited_cleanly or not slot.pid)):
            return  # told to stop, exited cleanly, or never forked
        event: events.Event = events.WorkerDied(Role(slot.role).name.lower(), slot.number, slot.pid, death.cause)
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


def _forget_boot(board: Board) -> None:
    """Forget an earlier boot problem once all workers have become ready."""
    if boot_problem(board.header) and not present_boot_problem(board):
        board.header.note_failed_boot(0, "")


def _is_unsettled(incarnation: int, slot: Slot) -> bool:
    return bool(slot.dead and slot.settled_incarnation != incarnation and not slot.holds_nothing)
