"""What the board of a dead worker says about who ended it, for a worker that ran several jobs at once."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

from queuepool.board.board import LEASE_MARGIN, Killed, Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.lanes import HeldLane
from queuepool.steward.culprits import Cause, CrashedIn, Culprits, Evidence, LaneAtDeath, culprits_of

_KILLS = {
    Killed.STOP: Cause.STOP,
    Killed.LEASE: Cause.LEASE,
    Killed.OVERDUE: Cause.DEADLINE,
    Killed.STALLED: Cause.DEADLINE,
    Killed.MEMORY: Cause.KILLED,
}
#: seconds before its end at which a lease counts as what the master killed for: when it did, and as much again
_MARGIN = 2 * LEASE_MARGIN
#: how faulthandler begins after a crash; after an alarm it begins with a thread
_CRASH = "Fatal Python error"
#: how faulthandler heads the thread that crashed; it may list others before
_CURRENT = re.compile(r"^Current thread 0x([0-9a-f]+)", re.M)


class Rulings:
    """Who answers for each death, until it is settled: a later round would see less, as some lanes are settled by then.

    ``grace``: seconds between a deadline and the alarm.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._found: dict[str, Culprits] = {}

    def of(self, death: str, slot: Slot, code: int, status: int | None, trace: Callable[[], str]) -> Culprits | None:
        """The ruling on this death; ``None`` for a worker that ran one job at a time. Others as of ``evidence_of``."""
        if slot.lanes and death not in self._found:
            self._found[death] = culprits_of(evidence_of(slot, code, status, trace(), self._grace))
        return self._found.get(death)

    def forget(self, death: str) -> None:
        """It is settled."""
        self._found.pop(death, None)


def evidence_of(slot: Slot, code: int, status: int | None, trace: str, grace: float) -> Evidence:
    """The evidence. ``code``: the exit code, negative for a signal; ``status``: ``None`` if no master saw the death."""
    assert slot.lanes
    lanes = slot.lanes
    held, now = lanes.held(), time.monotonic()
    cause = _cause_of(slot, code, status, trace)
    return Evidence(
        cause,
        [_at_death(one, lanes.free, now) for one in held if one.stage != Stage.SETTLED],
        at=_time_of(held, cause, grace, now),
        grace=grace,
        # Of a crash there a job may be the cause, by what it has asked of a client; of blocking the loop it is not.
        on_cpu=lanes.count if lanes.is_common_on_cpu and cause == Cause.DEADLINE else lanes.on_cpu,
        since=lanes.on_cpu_since,
        crashed_in=_crashed_in(trace, lanes.thread) if cause == Cause.FAULT else CrashedIn.UNKNOWN,
    )


def _cause_of(slot: Slot, code: int, status: int | None, trace: str) -> Cause:
    if cause := _KILLS.get(Killed(slot.killed)):
        return cause
    if slot.exited_cleanly:
        return Cause.STOP  # it left while the store was away: all that it held had ended
    if code == -signal.SIGALRM or _is_alarms(trace):
        return Cause.DEADLINE
    return Cause.KILLED if status is None or code == -signal.SIGKILL else Cause.FAULT


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


def _time_of(held: list[HeldLane], cause: Cause, grace: float, now: float) -> float:
    """When it died (monotonic): the alarm is punctual, its discovery is not."""
    deadlines = [one.deadline for one in held if one.deadline]
    alarm = min(deadlines) + grace if deadlines and cause == Cause.DEADLINE else now
    return min(alarm, now)


def _crashed_in(trace: str, thread: int) -> CrashedIn:
    found = _CURRENT.search(trace)
    if not found or not thread:
        return CrashedIn.UNKNOWN
    return CrashedIn.LOOP if int(found[1], 16) == thread else CrashedIn.OTHER
