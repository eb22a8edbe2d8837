"""The end of one process of a pool: what it held, why it ended, and what that means for its jobs and its meters.

If the worker ran several jobs at once, the board also shows which of them ended it (``evidence_of``).
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import NamedTuple

from queuepool import events
from queuepool.board import boot_report
from queuepool.board.board import LEASE_MARGIN, STALL_TIMEOUT, Board, Killed, Slot
from queuepool.board.boot_report import BootReport
from queuepool.board.held_jobs import BEGUN, NOTHING, HeldJob, Running, Stage
from queuepool.board.lane_layout import key_of
from queuepool.board.lanes import HeldLane, Lanes, OwnEnd
from queuepool.board.meters import AS_LOST, DONE, GIVEN_BACK, LOST, SlotMeters
from queuepool.board.step_place import StepPlace
from queuepool.errors import AttemptLost, Cancelled, TimedOut, WorkerDied
from queuepool.log.tracebacks import imports_part
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.limits import holding
from queuepool.settlement.facts import facts_of
from queuepool.settlement.settler import Settlement
from queuepool.settlement.verdict import NOT_RUN, Policy, RanBy, Run, Verdict
from queuepool.steward.culprits import Cause, Charge, CrashedIn, Culprits, Evidence, LaneAtDeath, culprits_of
from queuepool.unix import proc
from queuepool.unix.exit_codes import BOOT

#: for the meters: how an attempt without a verdict ends, why it was lost, and why its worker left
WITHOUT_A_VERDICT = AS_LOST + GIVEN_BACK
_KILLS = {Killed.OVERDUE: "timeout", Killed.STALLED: "timeout", Killed.LEASE: "lease", Killed.MEMORY: "memory"}
_LOSSES = {**_KILLS, Killed.CANCELLED: "cancelled"}
_EXITS = {**_KILLS, Killed.STOP: "stop", Killed.CANCELLED: "stop", Killed.OVERWRITTEN: "crash"}
#: the kills that an operator has asked for: no job is to blame
ASKED = (Killed.STOP, Killed.CANCELLED)
_CAUSES = {
    Killed.STOP: Cause.STOP,
    Killed.CANCELLED: Cause.STOP,
    Killed.LEASE: Cause.LEASE,
    Killed.OVERDUE: Cause.DEADLINE,
    Killed.STALLED: Cause.STALL,
    Killed.MEMORY: Cause.KILLED,
}
#: seconds before its end from which a lease counts as the reason of a kill: the master's own margin, twice
_MARGIN = 2 * LEASE_MARGIN
#: how faulthandler begins after a crash; after an alarm it begins with a thread
_CRASH = "Fatal Python error"
#: how faulthandler heads the thread that crashed; it may list others before
_CURRENT = re.compile(r"^Current thread 0x([0-9a-f]+)", re.M)


class Death:
    """The end of one process: what it held, why it ended, and what that means for its jobs and its meters.

    What the process wrote may crash the steward, so it is read only when needed, and once.
    """

    def __init__(self, board: Board, slot: Slot, incarnation: int, grace: float) -> None:
        """``grace``: seconds between a deadline and the alarm."""
        self.board = board
        self.slot = slot
        self.incarnation = incarnation
        self._grace = grace
        #: the wait status; ``None`` if no master saw the death
        self.status = proc.plausible(slot.status) if slot.dead else None
        #: when it ended, in Unix seconds, as far as that is known: when its master saw it
        self._ended = None if self.status is None else time.time()
        self.code = 0 if self.status is None else os.waitstatus_to_exitcode(self.status)
        # On another pool's board the meters are out of reach: nothing is counted there.
        self._meters = SlotMeters(board.meters, slot)
        self._meters.note_death()

    def __str__(self) -> str:
        return f"{self.board.path.name} slot {self.slot.index} life {self.incarnation}"

    @cached_property
    def held(self) -> list[HeldJob] | None:
        """All jobs that it held; ``None`` if a job has overwritten them: they are not settled, and their leases end.

        Lanes are units of their own: one that is overwritten counts as free.
        """
        slot = self.slot
        if slot.killed == Killed.OVERWRITTEN or not slot.is_plausible(inf, inf):
            return None
        try:
            damaged = {ran.number for ran in self._shown if not _is_policy(ran.policy)}
            held = [one for one in slot.held() if one.number not in damaged]
        except (ValueError, OSError):
            return None
        if damaged and not slot.lanes:
            return None
        if self.board.header.limits_at:
            held = [replace(one, lease=holding(one.lease)) for one in held]
        if slot.killed in ASKED:  # not killed by what it read
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
            return OpenAttempt(lease, payload, run=Run(by=self.by))
        lease = lease._replace(steps=self._place(one).end_of(payload.id))
        # The result was lost with the worker.
        problem = "the worker died before the result was stored" if one.stage == Stage.DONE else ""
        run = Run(
            began=ran.since or None,
            progress=ran.progress,
            note=ran.note,
            result_problem=problem,
            ended=self._ended if one.stage == Stage.RUNNING else None,
            by=self.by,
        )
        # It may be one that the store refused to settle, with another begun after it: tracked as its payload says.
        tracked = payload.tracked_for(ran.track) if payload.id == ran.id else payload
        return OpenAttempt(lease, tracked, Policy.from_text(ran.policy or "{}"), run)

    def has_steps(self, one: HeldJob) -> bool:
        """Whether steps may be kept of this held job."""
        return bool(self._place(one).turn)

    def _place(self, one: HeldJob) -> StepPlace:
        return self.slot.lanes.place(one.number) if self.slot.lanes else self.slot.place

    @property
    def by(self) -> RanBy:
        """Who has ended."""
        slot = self.slot
        return RanBy(slot.pid, slot.number, slot.generation, self.board.header.since)

    def settlement(self, attempt: OpenAttempt, error: AttemptLost, verdict: Verdict) -> Settlement:
        """How to settle an attempt that the process's death interrupted."""
        payload = attempt.payload
        facts = facts_of(payload, attempt.lease.queue)
        killed = events.KilledAttempt(attempt.run.began, time.time(), payload.extra)
        cause: events.Event = events.JobLost(facts, str(error), error.trace, killed)
        tally = "crashes"
        if isinstance(error, TimedOut):  # Laravel counts a timeout as an exception
            cause, tally = events.JobTimedOut(facts, error.trace, killed), "exceptions"
        elif isinstance(error, Cancelled):
            cause = events.JobCancelled(facts, error.by, killed)
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
            return TimedOut(f"{name} ran past its deadline: {self.cause}", self._trace)
        if self.slot.killed == Killed.STALLED:  # the job had ended, but was not settled in time
            return TimedOut(f"{name} had ended when its worker stalled: {self.cause}", self._trace)
        return WorkerDied(f"{name}: its worker died: {self.cause}", self._trace)

    @property
    def cause(self) -> str:
        """Why the process died, in words."""
        if self.slot.lanes and self.slot.killed == Killed.STALLED:
            return "killed by the master: its main thread hung"
        if reason := Killed(self.slot.killed).reason:
            return f"killed by the master: {reason}"
        return "unknown, its master was gone" if self.status is None else proc.cause_of(self.status)

    @property
    def is_a_fault(self) -> bool:
        """Whether it crashed or left by itself, rather than being killed."""
        return self.status is not None and self.code not in (-signal.SIGKILL, -signal.SIGALRM)

    @property
    def report(self) -> BootReport:
        """Why the process did not become ready. Unlike a traceback, stacks have all frames; ours are removed here."""
        text = self._trace if self.code == BOOT else imports_part(self._trace)
        return boot_report.of_text(text, self.status or 0, self.slot.note)

    @cached_property
    def _trace(self) -> str:
        return boot_report.text_in(self.board.trace(self.slot))

    def rule(self) -> None:
        """Write on the board which jobs are to blame, if the worker ran several and nothing is written yet.

        A settled lane no longer shows it.
        """
        lanes = self.slot.lanes
        if lanes and lanes.ruling(self.incarnation) is None:
            found = culprits_of(evidence_of(self.slot, self.code, self.status, self._trace, self._grace))
            lanes.rule(self.incarnation, found.numbers)

    @cached_property
    def culprits(self) -> Culprits | None:
        """Which jobs are to blame, as ``rule`` has written it; ``None`` for a worker that ran one job at a time."""
        lanes = self.slot.lanes
        return Culprits.of(lanes.ruling(self.incarnation) or {}) if lanes else None

    def ends(self, one: HeldJob, way: int) -> None:
        """Count in the meters that this attempt ended in this way, before the board shows it as settled."""
        if self.slot.lanes:
            self._count_lane(one.number, way)
        elif one.stage == Stage.RUNNING:
            self._meters.intend(way, self._loss)

    def _count_lane(self, lane: int, way: int) -> None:
        assert self.slot.lanes
        if one := self._uncounted.pop(lane, None):
            key, names, loss = key_of(lane, one.turn), (one.lease.queue, one.job), self._loss if way >= LOST else ""
            self._meters.count(key, names, way, loss, self._meters.run_time(one.since))
            self.slot.lanes.mark_counted(lane)

    @cached_property
    def _uncounted(self) -> dict[int, HeldLane]:
        """The lanes whose attempts had begun and are not counted."""
        lanes = self.slot.lanes
        assert lanes
        found = {one.lane: one for one in lanes.held() if one.stage in BEGUN and not one.counted}
        last = self._meters.counted_last()
        for lane in [lane for lane, one in found.items() if key_of(lane, one.turn) == last]:
            lanes.mark_counted(lane)  # its counter died in the middle; once another is counted, nothing shows that
            del found[lane]
        return found

    def count(self, held: Sequence[HeldJob]) -> None:
        """Count its exit in the meters, and the attempts that are not counted yet. May be repeated.

        ``held``: what it held when it died.
        """
        if self._meters.is_open and not self.slot.lanes:
            for ran in self._shown:
                self._count_attempt(ran, held)
        if self.slot.lanes and held:  # what the store has refused to settle
            for lane, one in list(self._uncounted.items()):
                self._count_lane(lane, DONE if one.stage == Stage.DONE else WITHOUT_A_VERDICT)
        self._meters.leave(self._exit)

    def _count_attempt(self, ran: Running, held: Sequence[HeldJob]) -> None:
        meters, stage = self._meters, held[ran.number].stage if 0 <= ran.number < len(held) else None
        if stage in (Stage.RESERVED, Stage.READING):  # it died before the attempt began on the board
            meters.forget()
            return
        if stage == Stage.DONE:
            meters.intend(DONE)
        elif meters.intended is None:  # the store refused the verdict, or the board was overwritten
            meters.intend(WITHOUT_A_VERDICT, self._loss)
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


def _is_policy(text: str) -> bool:
    """Whether a policy can be read from this text; a longer one than there is room for was cut."""
    try:
        Policy.from_text(text or "{}")
    except (ValueError, TypeError):
        return False
    return True


def evidence_of(slot: Slot, code: int, status: int | None, trace: str, grace: float) -> Evidence:
    """The evidence. ``code``: the exit code, negative for a signal; ``status``: ``None`` if no master saw the death."""
    assert slot.lanes
    lanes = slot.lanes
    held, now = lanes.held(), time.monotonic()
    cause = _cause_of(slot, code, status, trace)
    return Evidence(
        cause,
        [_at_death(one, lanes.free, now) for one in held if one.stage != Stage.SETTLED],
        at=_time_of(slot, held, cause, grace, now),
        grace=grace,
        on_cpu=_on_cpu(lanes, cause),
        since=lanes.on_cpu_since,
        watched=lanes.watched if cause == Cause.DEADLINE else 0.0,
        settling=lanes.settling,
        silence=STALL_TIMEOUT,
        crashed_in=_crashed_in(trace, lanes.thread) if cause == Cause.FAULT else CrashedIn.UNKNOWN,
    )


def _on_cpu(lanes: Lanes, cause: Cause) -> int | None:
    # A crash in a task that is common to all may be due to what a job has asked of a client: then the step proves
    # nothing. No job makes such a task block the loop: then the task is treated like a hook.
    return lanes.hook if lanes.is_common_on_cpu and cause == Cause.DEADLINE else lanes.on_cpu


def _cause_of(slot: Slot, code: int, status: int | None, trace: str) -> Cause:
    if cause := _CAUSES.get(Killed(slot.killed)):
        return cause
    if slot.has_left:
        return Cause.STOP  # it left while the store was away: all that it held had ended
    if code == -signal.SIGALRM or _is_alarms(trace):
        return Cause.DEADLINE
    if status is None or code == -signal.SIGKILL:
        return Cause.KILLED
    return _own_end_of(slot, code) or Cause.FAULT


def _own_end_of(slot: Slot, code: int) -> Cause | None:
    """Why it has left by itself, if that was not by the code of a job: the loop may have been in the step of any."""
    why = slot.lanes.own_end if slot.lanes and code > 0 else None
    # Which job has closed the files, and when, is unknown.
    return {None: None, OwnEnd.FAILED: Cause.FAILURE, OwnEnd.BROKEN: Cause.KILLED}[why]


def _is_alarms(trace: str) -> bool:
    """Whether the alarm had begun to write the stacks when the process crashed.

    The thread that gets the alarm reads the frames of the others while they run, which crashes it now and then.
    """
    return trace.find(_CRASH) > 0


def _at_death(one: HeldLane, free: float, now: float) -> LaneAtDeath:
    return LaneAtDeath(
        one.lane,
        one.stage,
        one.deadline,
        told_for=max(free - one.told, 0.0) if one.told else None,
        has_thread=one.threads > 0,
        is_suspect=one.is_suspect,
        lost_lease=0.0 < one.lease_end <= now + _MARGIN,
    )


def _time_of(slot: Slot, held: list[HeldLane], cause: Cause, grace: float, now: float) -> float:
    """When it died (monotonic). The alarm and the master are punctual; the discovery of the death is not."""
    deadlines = [one.deadline for one in held if one.deadline] if cause == Cause.DEADLINE else []
    if cause == Cause.STALL and slot.deadline:
        deadlines.append(slot.deadline)
    return min([now, *(deadline + grace for deadline in deadlines)])


def _crashed_in(trace: str, thread: int) -> CrashedIn:
    found = _CURRENT.search(trace)
    if not found or not thread:
        return CrashedIn.UNKNOWN
    return CrashedIn.LOOP if int(found[1], 16) == thread else CrashedIn.OTHER
