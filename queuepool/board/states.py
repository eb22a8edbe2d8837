"""A process's role, its state and why it was killed, as numbers on the board; an invalid one reads as the default."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """The kind of process in a slot."""

    FREE = 0
    WORKER = 1
    STEWARD = 2
    TEMPLATE = 3
    WEB = 4

    @classmethod
    def _missing_(cls, value: object) -> Role:
        return cls.FREE


#: the processes that hold no jobs, and stay until the last worker has left
HELPERS = (Role.STEWARD, Role.WEB)


class State(IntEnum):
    """What a process is doing; ``ps`` shows these names."""

    STARTING = 0
    RUNNING = 1
    IDLE = 2
    BUSY = 3
    PAUSED = 4
    DRAINING = 5
    STOPPING = 6
    #: a pool whose steward dies repeatedly
    FAILING = 7

    @classmethod
    def _missing_(cls, value: object) -> State:
        return cls.STARTING


#: of a worker that runs jobs; one that drains takes no more
RUNS_JOBS = (State.BUSY, State.DRAINING)


class Killed(IntEnum):
    """Why the master killed a process, if it did."""

    NOT = 0
    OVERDUE = 1
    LEASE = 2
    MEMORY = 3
    STOP = 4
    #: its slot held values that neither it nor the master can have written
    OVERWRITTEN = 5
    #: its deadline passed while no job of it ran
    STALLED = 6
    #: the job that it ran was cancelled; see ``cancelling.py``
    CANCELLED = 7

    @property
    def reason(self) -> str:
        """The reason in words, for the log and for the record of a job that was killed with its worker."""
        return _REASONS.get(self, "")

    @classmethod
    def _missing_(cls, value: object) -> Killed:
        return cls.NOT


class Hold(IntEnum):
    """Why a pool that scales does not get the workers that its steward wishes for."""

    NOT = 0
    BOOT = 1
    MEMORY = 2
    SILENCE = 3

    @property
    def reason(self) -> str:
        """The reason in words."""
        return _HOLDS.get(self, "")

    @classmethod
    def _missing_(cls, value: object) -> Hold:
        return cls.NOT


_HOLDS = {
    Hold.BOOT: "no more before a worker has booted",
    Hold.MEMORY: "no more, or memory_reserve would not be left",
    Hold.SILENCE: "what waits is not known",
}
_REASONS = {
    Killed.OVERDUE: "past its deadline, and the alarm did not end it",
    Killed.LEASE: "its lease could not be renewed",
    Killed.MEMORY: "it had reached memory_hard",
    Killed.STOP: "the stop no longer waits for it",
    Killed.OVERWRITTEN: "a job had overwritten its slot on the board",
    Killed.STALLED: "no job ran: the process itself hung",
    Killed.CANCELLED: "its job was cancelled",
}
