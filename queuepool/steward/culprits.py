"""Which job killed a worker that ran several at once: a pure function of what the worker left behind.

Its event loop records which lane has the CPU, and since when. That identifies the job whose step crashed, left the
process or blocked the loop. If that proves nothing, all jobs that may have done it become suspects. A job that has been
a suspect too often runs beside no other such job, so an unproven death then leaves only one suspect, which is charged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from queuepool.board.held_jobs import AT_WORK, Stage


class Cause(Enum):
    """Why a worker died, as far as that matters to its jobs."""

    #: no job's fault: the pool was stopped and waited no longer, or a job that was cancelled did not end
    STOP = auto()
    #: the master's kill before a lease ended that could not be renewed
    LEASE = auto()
    #: the alarm, or the master's kill after it
    DEADLINE = auto()
    #: the master's kill of a worker whose main thread, which runs no job's code, stopped responding
    STALL = auto()
    #: an exception in its main thread, which runs no job's code
    FAILURE = auto()
    #: the signal of a fault, or an exit of a job's
    FAULT = auto()
    #: SIGKILL from elsewhere, a limit of memory, closed files, or a death that no process observed
    KILLED = auto()


class CrashedIn(Enum):
    """The thread that the stacks name as the one that crashed."""

    #: that of the event loop
    LOOP = auto()
    OTHER = auto()
    #: nothing was dumped, as when the process exits
    UNKNOWN = auto()


class Charge(IntEnum):
    """What a lane's job is charged with; the numbers are those on the board."""

    #: it was told to end at its deadline and did not, or it blocked the loop beyond its deadline
    LATE = 1
    #: it blocked the loop, so that others could not end at their deadlines, or the main thread not go on
    BLOCKED = 2
    CRASHED = 3
    #: nothing is proven, but it was the only suspect; counts as a crash
    SUSPECTED = 4
    #: its lease could not be renewed: another worker may have the job, so it is not settled
    LOST = 5
    #: the main thread hung, or failed, while it read or settled this job
    STALLED = 6


@dataclass(frozen=True, slots=True)
class LaneAtDeath:
    """One lane of a dead worker. Times are monotonic seconds."""

    number: int
    stage: Stage = Stage.RUNNING
    #: 0.0 = its job has none
    deadline: float = 0.0
    #: seconds for which the loop was free since it told the job to end; ``None``: it has not
    told_for: float | None = None
    #: whether a thread was at work for the job, which can crash while another lane has the CPU
    has_thread: bool = False
    #: whether the job has been a suspect so often that it runs beside no other such job
    is_suspect: bool = False
    lost_lease: bool = False

    @property
    def is_at_work(self) -> bool:
        """Whether its job's own code may have run."""
        return self.stage in AT_WORK


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a dead worker left behind. Times are monotonic seconds; ``at``: when it died, and not when it was found."""

    cause: Cause
    lanes: Sequence[LaneAtDeath]
    at: float = 0.0
    #: seconds between a lane's deadline and the alarm
    grace: float = 1.0
    #: the lane whose step had the CPU; the number of no lane = code that belongs to no job; ``None`` = the loop waited,
    #: or it may have been the code of any job
    on_cpu: int | None = None
    #: when the last step began, over or not
    since: float = 0.0
    #: for how many seconds of that step the main thread was seen to go on, so that no thread had the interpreter's lock
    watched: float = 0.0
    #: the lane whose job the main thread was settling
    settling: int | None = None
    #: seconds, at least, for which the main thread had stopped responding, if the worker was killed for that
    silence: float = 0.0
    crashed_in: CrashedIn = CrashedIn.UNKNOWN

    @property
    def at_work(self) -> dict[int, LaneAtDeath]:
        """The lanes whose jobs may be to blame."""
        return {lane.number: lane for lane in self.lanes if lane.is_at_work}

    @property
    def threaded(self) -> set[int]:
        """The lanes, besides the one that has the CPU, for which a thread was at work."""
        return {number for number, lane in self.at_work.items() if lane.has_thread and number != self.on_cpu}


class Culprits(NamedTuple):
    """What becomes of the jobs in the lanes at work; the stages alone decide about the others.

    ``suspects`` are tried again, and their attempt counts; the ``innocent`` are given back as if never begun.
    """

    charged: Mapping[int, Charge]
    suspects: Collection[int] = ()
    innocent: Collection[int] = ()

    def is_one_of_many(self, lane: int) -> bool:
        """Whether nothing is proven against this lane's job, and there are other suspects or charges."""
        return lane in self.suspects and len(self.numbers) > 1

    @property
    def numbers(self) -> dict[int, int]:
        """The same by lane, in the numbers of the board."""
        return {
            **dict.fromkeys(self.innocent, _INNOCENT),
            **dict.fromkeys(self.suspects, _SUSPECT),
            **{lane: int(charge) for lane, charge in self.charged.items()},
        }

    @classmethod
    def of(cls, numbers: Mapping[int, int]) -> Culprits:
        """The findings of these numbers. A number that no steward can have written counts as no proof."""
        charged = {lane: Charge(number) for lane, number in numbers.items() if number in _CHARGES}
        innocent = frozenset(lane for lane, number in numbers.items() if number == _INNOCENT)
        return cls(charged, frozenset(numbers.keys() - charged.keys() - innocent), innocent)


#: on the board, beside the numbers of charges
_SUSPECT, _INNOCENT = 8, 9
_CHARGES = frozenset(map(int, Charge))


@dataclass(frozen=True, slots=True)
class _Finding:
    """A proof, perhaps that no job did it; or, without a proof, the lanes whose jobs may have done it."""

    charged: Mapping[int, Charge] = field(default_factory=dict)
    possible: Collection[int] = ()


_NOBODY = _Finding()


def culprits_of(evidence: Evidence) -> Culprits:
    """Rule on every lane that was at work."""
    at_work, found = evidence.at_work, _RULES[evidence.cause](evidence)
    possible = at_work.keys() & set(found.possible)
    suspected = [number for number in possible if at_work[number].is_suspect]
    charged = dict(found.charged)
    if len(suspected) == 1:
        charged[suspected[0]] = Charge.SUSPECTED
    suspects = frozenset(possible - charged.keys())
    return Culprits(charged, suspects, frozenset(at_work.keys() - charged.keys() - suspects))


def _of_a_stop(evidence: Evidence) -> _Finding:
    return _NOBODY


def _of_a_lost_lease(evidence: Evidence) -> _Finding:
    return _Finding({number: Charge.LOST for number, lane in evidence.at_work.items() if lane.lost_lease})


def _of_a_deadline(evidence: Evidence) -> _Finding:
    """The jobs that did not end although the loop was free; else the one that kept the loop from ending others."""
    patience = evidence.grace / 2
    obstinate = {
        number: Charge.LATE
        for number, lane in evidence.at_work.items()
        if _is_past(lane, evidence.at - evidence.grace) and (lane.told_for or 0.0) >= patience
    }
    if obstinate:
        return _Finding(obstinate)
    # A step that has just begun is innocent: the alarm strikes at any moment.
    if evidence.on_cpu is None or evidence.at - evidence.since < patience:
        return _Finding(possible=evidence.at_work)
    lane = evidence.at_work.get(evidence.on_cpu)
    is_late = lane is not None and _is_past(lane, evidence.at)
    charge = Charge.LATE if is_late else Charge.BLOCKED
    return _of_the_step(evidence, evidence.on_cpu, charge, is_proven=evidence.watched >= patience)


def _of_a_stall(evidence: Evidence) -> _Finding:
    """The job that the main thread was handling; else the one that kept it from going on; else none: it hung by itself.

    A job's code keeps it by holding the GIL, which the loop needs as well: no step has begun for as long.
    """
    at_hand = _of_a_failure(evidence)
    if at_hand.charged:
        return at_hand
    if evidence.at - evidence.since < evidence.silence / 2:
        return _NOBODY
    if evidence.on_cpu is None:
        return _Finding(possible=evidence.threaded)
    return _of_the_step(evidence, evidence.on_cpu, Charge.BLOCKED)


def _of_a_failure(evidence: Evidence) -> _Finding:
    """The job that the main thread was handling; else none."""
    reading = [number for number, lane in evidence.at_work.items() if lane.stage == Stage.READING]
    return _Finding(dict.fromkeys(evidence.at_work.keys() & {evidence.settling, *reading}, Charge.STALLED))


def _is_past(lane: LaneAtDeath, time: float) -> bool:
    return 0.0 < lane.deadline <= time


def _of_a_fault(evidence: Evidence) -> _Finding:
    if evidence.crashed_in == CrashedIn.OTHER or evidence.on_cpu is None:
        return _Finding(possible=evidence.at_work)  # a callback, or a thread of which we do not know
    return _of_the_step(evidence, evidence.on_cpu, Charge.CRASHED)


def _of_the_step(evidence: Evidence, number: int, charge: Charge, *, is_proven: bool = False) -> _Finding:
    """The lane that has the CPU, unless a thread may have exited meanwhile, or held the interpreter's lock."""
    if evidence.threaded and not is_proven and evidence.crashed_in != CrashedIn.LOOP:
        return _Finding(possible={number, *evidence.threaded})
    # The job in a lane that is not at work has ended, and its hook ran.
    return _Finding(dict.fromkeys(evidence.at_work.keys() & {number}, charge))


def _of_a_kill(evidence: Evidence) -> _Finding:
    return _Finding(possible=evidence.at_work)


_RULES = {
    Cause.STOP: _of_a_stop,
    Cause.LEASE: _of_a_lost_lease,
    Cause.DEADLINE: _of_a_deadline,
    Cause.STALL: _of_a_stall,
    Cause.FAILURE: _of_a_failure,
    Cause.FAULT: _of_a_fault,
    Cause.KILLED: _of_a_kill,
}
