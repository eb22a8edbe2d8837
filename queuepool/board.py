"""The board: one shared page of facts about every process of a pool, with one writer for each field.

It is a file in the pool's runtime directory, so that ``status`` reads it at no cost to anyone, and so that a new master
finds what the dead workers of a killed one held.
"""

from __future__ import annotations

import mmap
import os
from io import FileIO
from pathlib import Path

from queuepool import proc
from queuepool.hand import AREA, Hand
from queuepool.slot import Header as Header
from queuepool.slot import Killed as Killed
from queuepool.slot import Role as Role
from queuepool.slot import Slot as Slot
from queuepool.slot import State as State

_MAGIC = 0x71756575_00000005
_PAGE = 4096
_SLOT = -(-(Slot.size + 2 * AREA) // _PAGE) * _PAGE


class Board:
    """A mapping of the file: a header and ``capacity`` slots."""

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path = path
        self.memory = memory
        self.header = Header(memory, 0)
        self.slots = [self._slot(index) for index in range(self.header.capacity)]

    @classmethod
    def create(cls, path: Path, capacity: int, store: str = "") -> Board:
        """A new, empty board of this process's, for this store's receipts. Sparse: only what is written takes room."""
        draft = path.with_name(f"{path.name}.new")  # whole or not there: others look for boards that nobody owns
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, _PAGE + capacity * _SLOT)
            memory = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        header = Header(memory, 0)
        header.capacity, header.store = capacity, store
        header.master_pid, header.master_born = os.getpid(), proc.born(os.getpid())
        header.magic = _MAGIC
        try:
            path.hardlink_to(draft)
        finally:
            draft.unlink()
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

    def of(self, *roles: Role) -> list[Slot]:
        """The slots of living and not yet settled processes of these kinds."""
        return [slot for slot in self.slots if slot.role in roles]

    def free_slot(self) -> Slot | None:
        return next((slot for slot in self.slots if slot.role == Role.FREE), None)

    def free_settled(self) -> None:
        """The master's: free the slots whose dead are settled, or held nothing."""
        for slot in self.slots:
            if slot.dead and (slot.settled_life == slot.life or slot.holds_nothing):
                self._free(slot)

    @property
    def is_settled(self) -> bool:
        """Whether no worker is left on it whose jobs somebody might still have to settle."""
        return all(slot.settled_life == slot.life for slot in self.of(Role.WORKER))

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
        slot.hands = self._hand(slot, 0), self._hand(slot, 1)
        return slot

    def _hand(self, slot: Slot, number: int) -> Hand:
        spill = self.path.with_name(f"{self.path.name}.{slot.index}.{number}")
        return Hand(self.memory, slot.base + Slot.size + number * AREA, spill)
