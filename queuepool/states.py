"""What processes are, do and are killed for, as it stands on the board; what means nothing reads as the first."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """Whose slot it is."""

    FREE = 0
    WORKER = 1
    STEWARD = 2
    TEMPLATE = 3

    @classmethod
    def _missing_(cls, value: object) -> Role:
        return cls.FREE


class State(IntEnum):
    """What a process is doing; the names are those in ``ps``."""

    STARTING = 0
    RUNNING = 1
    IDLE = 2
    BUSY = 3
    PAUSED = 4
    DRAINING = 5
    STOPPING = 6
    #: a pool whose steward dies again and again
    FAILING = 7

    @classmethod
    def _missing_(cls, value: object) -> State:
        return cls.STARTING


class Killed(IntEnum):
    """Why the master killed a process, if it did."""

    NOT = 0
    OVERDUE = 1
    LEASE = 2
    MEMORY = 3
    STOP = 4
    #: its slot held what neither it nor the master can have written
    OVERWRITTEN = 5

    @classmethod
    def _missing_(cls, value: object) -> Killed:
        return cls.NOT
