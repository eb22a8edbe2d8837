"""What the board of a dead worker says about who ended it, for a worker that ran several jobs at once."""

from __future__ import annotations

import re
import signal
import time

from queuepool.board.board import LEASE_MARGIN, STALL_TIMEOUT, Killed, Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.lanes import HeldLane, Lanes, OwnEnd
from queuepool.steward.culprits import Cause, CrashedIn, Evidence, LaneAtDeath

_KILLS = {
    Killed.STOP: Cause.STOP,
    Killed.CANCELLED: Cause.STOP,
    Killed.LEASE: Cause.LEASE,
    Killed.OVERDUE: Cause.DEADLINE,
    Killed.STALLED: Cause.STALL,
    Killed.MEMORY: Cause.KILLED,
}
#: seconds before its end at which a lease counts as what the master killed for: when it did, and as much again
_MARGIN = 2 * LEASE_MARGIN
#: how faulthandler begins after a crash; after an alarm it begins with a thread
_CRASH = "Fatal Python error"
#: how faulthandler heads the thread that crashed; it may list others before
_CURRENT = re.compile(r"^Current thread 0x([0-9a-f]+)", re.M)


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
    # Of a crash in a task that is common to all, a job may be the cause by what it has asked of a client: then the
    # step proves nothing. Of blocking the loop it is not: then that task is as good as a hook.
    return lanes.hook if lanes.is_common_on_cpu and cause == Cause.DEADLINE else lanes.on_cpu


def _cause_of(slot: Slot, code: int, status: int | None, trace: str) -> Cause:
    if cause := _KILLS.get(Killed(slot.killed)):
        return cause
    if slot.exited_cleanly:
        return Cause.STOP  # it left while the store was away: all that it held had ended
    if code == -signal.SIGALRM or _is_alarms(trace):
        return Cause.DEADLINE
    if status is None or code == -signal.SIGKILL:
        return Cause.KILLED
    return _own_end_of(slot, code) or Cause.FAULT


def _own_end_of(slot: Slot, code: int) -> Cause | None:
    """Why it has left by itself, if that was not by the code of a job: the loop may have been in the step of any."""
    why = slot.lanes.own_end if slot.lanes and code > 0 else None
    # Whose job has closed the files, and when, nobody knows.
    return {None: None, OwnEnd.FAILED: Cause.FAILURE, OwnEnd.BROKEN: Cause.KILLED}[why]


def _is_alarms(trace: str) -> bool:
    """Whether the alarm had begun to write the stacks when the process crashed.

    The thread that it strikes reads the frames of the others while they run, which now and then is the end of it.
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
    """When it died (monotonic): the alarm is punctual, and so is the master; its discovery is not."""
    deadlines = [one.deadline for one in held if one.deadline] if cause == Cause.DEADLINE else []
    if cause == Cause.STALL and slot.deadline:
        deadlines.append(slot.deadline)
    return min([now, *(deadline + grace for deadline in deadlines)])


def _crashed_in(trace: str, thread: int) -> CrashedIn:
    found = _CURRENT.search(trace)
    if not found or not thread:
        return CrashedIn.UNKNOWN
    return CrashedIn.LOOP if int(found[1], 16) == thread else CrashedIn.OTHER
