"""The board: one shared page of facts about every process of a pool, with one writer for each field.

It is a file in the pool's runtime directory, so that ``status`` reads it at no cost to anyone, and so that a new master
finds what the dead workers of a killed one held. Deadlines are monotonic seconds, ``since`` is wall clock for people.
"""

from __future__ import annotations

import mmap
import os
from enum import IntEnum
from io import FileIO
from pathlib import Path

from queuepool.hand import AREA, Hand
from queuepool.record import Record, Seconds, Text, Whole

_MAGIC = 0x71756575_00000001
_PAGE = 4096


class Role(IntEnum):
    """Whose slot it is."""

    FREE = 0
    WORKER = 1
    STEWARD = 2


class State(IntEnum):
    """What a process is doing; the names are those in ``ps``."""

    STARTING = 0
    RUNNING = 1
    IDLE = 2
    BUSY = 3
    PAUSED = 4
    DRAINING = 5
    STOPPING = 6


class Killed(IntEnum):
    """Why the master killed a process, if it did."""

    NOT = 0
    OVERDUE = 1
    LEASE = 2
    MEMORY = 3
    STOP = 4


class Header(Record):
    """The pool as a whole."""

    magic = Whole()
    capacity = Whole()
    # The master's.
    master_pid = Whole()
    state = Whole()
    target = Whole()
    since = Seconds()
    # Of ended lives; the slots hold the others.
    done = Whole()
    failed = Whole()
    released = Whole()
    # The steward's.
    restarts = Whole()
    restart_known = Whole()
    restart_stamp = Text(64)
    store_lost = Seconds()
    down = Whole()
    paused = Text(2500)
    mourned = Whole()
    # Raised after every change of the three above: a worker reads one field a round.
    orders = Whole()
    # Asked for by `queuepool scale`, taken by the master.
    scale = Whole()


class Slot(Record):
    """One process, alive or dead and not yet settled."""

    # The master's.
    role = Whole()
    number = Whole()
    generation = Whole()
    life = Whole()
    pid = Whole()
    born = Whole()
    dead = Whole()
    status = Whole()
    killed = Whole()
    # The process's own.
    state = Whole()
    left = Whole()
    tag = Whole()
    asked = Seconds()
    turn = Whole()
    deadline = Seconds()
    lease_end = Seconds()
    done = Whole()
    failed = Whole()
    released = Whole()
    rss = Whole()
    since = Seconds()
    attempt = Whole()
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    policy = Text(2000)
    # The steward's.
    renewed_turn = Whole()
    renewed_end = Seconds()
    settled_life = Whole()

    hand: Hand
    index: int

    def begin(self, role: Role, number: int, generation: int) -> None:
        """The master's, before the fork: a new life in a free slot. Counters start anew."""
        life, settled = self.life + 1, self.settled_life
        self.clear()
        self.hand.drop()
        self.life, self.settled_life = life, settled
        self.number, self.generation = number, generation
        self.role = role

    @property
    def lease_deadline(self) -> float:
        """Monotonic end of the running job's lease, as renewed last; 0.0 = no job runs."""
        renewed = self.renewed_end
        return renewed if renewed and self.renewed_turn == self.turn else self.lease_end

    @property
    def holds_nothing(self) -> bool:
        """Whether its dead needs no settlement: a steward, or a worker that left in order with empty hands."""
        return self.role == Role.STEWARD or bool(self.left and not self.asked and self.hand.is_empty)


_SLOT = -(-(Slot.size + AREA) // _PAGE) * _PAGE


class Board:
    """A mapping of the file: a header and ``capacity`` slots."""

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path = path
        self.memory = memory
        self.header = Header(memory, 0)
        self.slots = [self._slot(index) for index in range(self.header.capacity)]

    @classmethod
    def create(cls, path: Path, capacity: int) -> Board:
        """A new, empty board; the file must not exist. It is sparse: only what is written takes room."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, _PAGE + capacity * _SLOT)
            memory = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        header = Header(memory, 0)
        header.capacity = capacity
        header.magic = _MAGIC
        return cls(path, memory)

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Board:
        """An existing board. Raises ``ValueError`` when it is none of this version, ``OSError`` when it is gone."""
        fd = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            memory = mmap.mmap(fd, 0, access=mmap.ACCESS_WRITE if write else mmap.ACCESS_READ)
        finally:
            os.close(fd)
        whole = len(memory) >= _PAGE and len(memory) % _PAGE == 0
        header = Header(memory, 0) if whole else None
        if not header or header.magic != _MAGIC or len(memory) != _PAGE + header.capacity * _SLOT:
            raise ValueError(f"{path} is no board of this version")
        return cls(path, memory)

    def of(self, role: Role) -> list[Slot]:
        """The slots of living and not yet settled processes of this kind."""
        return [slot for slot in self.slots if slot.role == role]

    def free_slot(self) -> Slot | None:
        return next((slot for slot in self.slots if slot.role == Role.FREE), None)

    def free_settled(self) -> None:
        """The master's: free the slots whose dead are settled, or held nothing."""
        for slot in self.slots:
            if slot.dead and (slot.settled_life == slot.life or slot.holds_nothing):
                self._free(slot)

    def trace(self, slot: Slot) -> Path:
        """Where faulthandler writes the stacks of the process in this slot."""
        return self.path.with_name(f"{self.path.name}.trace{slot.index}")

    def new_trace(self, slot: Slot) -> FileIO:
        """That file, empty and new: nothing that lay in its place is written to."""
        self.trace(slot).unlink(missing_ok=True)
        return FileIO(self.trace(slot), "x")

    def totals(self) -> tuple[int, int, int]:
        """Jobs done, failed and released since the pool began."""
        header, slots = self.header, self.of(Role.WORKER)
        return (
            header.done + sum(slot.done for slot in slots),
            header.failed + sum(slot.failed for slot in slots),
            header.released + sum(slot.released for slot in slots),
        )

    def unlink(self) -> None:
        """Remove the file and what lies beside it; the mapping lives on in who has it."""
        for path in (self.path, *self.path.parent.glob(f"{self.path.name}.*")):
            path.unlink(missing_ok=True)

    def _free(self, slot: Slot) -> None:
        """What it counted is kept."""
        header = self.header
        header.done += slot.done
        header.failed += slot.failed
        header.released += slot.released
        slot.role = Role.FREE
        slot.dead = 0

    def _slot(self, index: int) -> Slot:
        base = _PAGE + index * _SLOT
        slot = Slot(self.memory, base)
        slot.index = index
        slot.hand = Hand(self.memory, base + Slot.size, self.path.with_name(f"{self.path.name}.{index}"))
        return slot
