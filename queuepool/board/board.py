"""The board: one shared page of facts about every process of a pool, with one writer for each field.

It is a file in the pool's runtime directory, so that ``status`` can read it without disturbing the pool, and a new
master finds the jobs that the dead workers of a killed master held.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from queuepool.board.cancel_orders import kill_at
from queuepool.board.fields import Header as Header
from queuepool.board.fields import HeaderFacts, Totals
from queuepool.board.fields import Slot as Slot
from queuepool.board.held_jobs import AREA, HeldJobs
from queuepool.board.lane_layout import lanes_in, lanes_size
from queuepool.board.lanes import Lanes
from queuepool.board.meters import MeterMemory
from queuepool.board.record import SharedFile
from queuepool.board.states import HELPERS as HELPERS
from queuepool.board.states import RUNS_JOBS as RUNS_JOBS
from queuepool.board.states import Killed as Killed
from queuepool.board.states import Role as Role
from queuepool.board.states import State as State
from queuepool.board.step_place import StepPlace
from queuepool.unix import file_lock, proc, stray_processes

_MAGIC = 0x71756575_0000000D
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PAGE = 4096
#: bytes of a slot without lanes
_SLOT = -(-(Slot.size + 2 * AREA + StepPlace.size) // _PAGE) * _PAGE
#: most digits of a number in a board's name: a notice of another host may have any
_MOST_DIGITS = 20
#: seconds before a lease's end at which its worker must be dead
LEASE_MARGIN = 0.5
#: seconds beyond its waits that a worker's round without a job may take
STALL_TIMEOUT = 30.0


class Board:
    """A header and slots, in a file or in this process's memory; each slot has so many ``lanes``."""

    def __init__(self, path: Path, memory: SharedFile | mmap.mmap, lanes: int = 0) -> None:
        self.path = path
        self.lanes = lanes
        self._step = _SLOT + lanes_size(lanes)
        self.name = BoardName.parsed(path)
        self.memory = memory
        self.header = Header(memory, 0)
        #: the counters, in memory that only its pool's processes share; ``None`` in all others
        self.meters: MeterMemory | None = None
        self.used = 0
        self.slots = [self._slot(index) for index in range((len(memory) - _PAGE) // self._step)]

    @classmethod
    def create(cls, path: Path, capacity: int, store: str = "", *, room_for: int = 0, lanes: int = 0) -> Board:
        """A new, empty board of ``capacity`` slots, owned by this process, for receipts of ``store``.

        Disk space is allocated for ``room_for`` slots. Raises ``OSError``.
        """
        draft = path.with_name(f"{path.name}.new")  # complete or absent: others look for boards without an owner
        fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        step = _SLOT + lanes_size(lanes)
        file = SharedFile(fd, _PAGE + capacity * step)
        try:
            os.ftruncate(fd, len(file))  # sparse: the other slots get their space when needed
            file.allocate(0, _PAGE + room_for * step)
            board = cls._begun(path, file, lanes)
            board.hold()
            board.header.store = store
            path.hardlink_to(draft)
        except OSError:
            file.close()
            raise
        finally:
            draft.unlink()
        return board

    @classmethod
    def private(cls) -> Board:
        """A board of one slot that no other process can see."""
        return cls._begun(Path(os.devnull), mmap.mmap(-1, _PAGE + _SLOT))

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> Board:
        """An existing board. Raises ``ValueError`` when it is not of this version, ``OSError`` when it is gone."""
        return cls.opened(os.open(path, (os.O_RDWR if write else os.O_RDONLY) | _FLAGS), path)

    @classmethod
    def opened(cls, fd: int, path: Path) -> Board:
        """As ``open``, for an open file, which is closed on ``ValueError``."""
        file = SharedFile(fd, os.fstat(fd).st_size)
        is_whole = len(file) >= _PAGE and len(file) % _PAGE == 0
        header = Header(file, 0) if is_whole else None
        lanes = _lanes_of(header, len(file)) if header and header.magic == _MAGIC else None
        if lanes is None:
            file.close()
            raise ValueError(f"{path} is not a board of this version")
        return cls(path, file, lanes)

    @classmethod
    def _begun(cls, path: Path, memory: SharedFile | mmap.mmap, lanes: int = 0) -> Board:
        board = cls(path, memory, lanes)
        pid = os.getpid()
        board.header.facts = HeaderFacts(_MAGIC, len(board.slots), pid, proc.start_time(pid))
        return board

    def mapped(self) -> Board:
        """The board mapped into memory, for processes that write for every job.

        Closes the file, so that jobs do not inherit it. Raises ``OSError``, and ``ValueError`` if it is truncated.
        """
        if not isinstance(self.memory, SharedFile):
            return self
        mapped = Board(self.path, self.memory.mapped(), self.lanes)
        mapped.meters = self.meters
        self.memory.close()
        return mapped

    def allocate(self, slot: Slot) -> None:
        """By the master: allocate disk space for a slot. Raises ``OSError``."""
        if isinstance(self.memory, SharedFile):
            self.memory.allocate(slot.base, self._step)
        self.header.used = self.used = max(self.used, slot.index + 1)

    def restore_length(self) -> bool:
        """Restore the file's length if it was truncated; returns whether it was."""
        return isinstance(self.memory, SharedFile) and self.memory.restore_length()

    def hold(self, byte: int = 0) -> None:
        """By its master, or its steward (``byte`` 1): lock the file, so that other pid namespaces see it in use."""
        if isinstance(self.memory, SharedFile):
            with suppress(OSError):  # a steward that is about to end has it, or the file system has no locks
                file_lock.lock(self.memory.fd, byte)

    @property
    def has_master(self) -> bool:
        """Whether its master runs; for another system's board, whether a process holds its lock."""
        return self.name.has_master if self.name.is_of_this_system else self._is_held

    @property
    def has_steward(self) -> bool:
        """Whether its steward runs; for another system's board, as ``has_master``."""
        return any(map(self.has_living, self.of(Role.STEWARD))) if self.name.is_of_this_system else self._is_held

    def has_living(self, slot: Slot) -> bool:
        """Whether the slot's process is alive. A pid of another system means another process here."""
        return self.name.is_of_this_system and proc.is_alive(slot.pid, slot.start_time)

    @property
    def _is_held(self) -> bool:
        return isinstance(self.memory, SharedFile) and file_lock.holder(self.memory.fd) is not None

    @property
    def max_workers(self) -> int:
        """The most workers that fit: in a rolling restart, a worker's number has two slots; the steward has one."""
        return len(self.slots) // 2 - 1

    def of(self, *roles: Role) -> list[Slot]:
        """The slots of processes with these roles, alive, or dead and not yet settled."""
        # Reading all of them would be most of an idle pool's work.
        return [slot for slot in self.slots[: self.header.used or None] if slot.role in roles]

    def mark(self, slot: Slot, incarnation: int = 0) -> stray_processes.ProcessMark:
        """The mark of one incarnation (``incarnation``, by default the present one) of a slot, unique on this host."""
        return stray_processes.ProcessMark.of(self.path.name, slot.index, incarnation or slot.incarnation)

    @property
    def is_settled(self) -> bool:
        """Whether no worker is left on the board whose jobs may still have to be settled."""
        return all(slot.settled_incarnation == slot.incarnation for slot in self.of(Role.WORKER))

    def trace(self, slot: Slot) -> Path:
        """The file to which faulthandler writes the stacks of the process in this slot."""
        return self.path.with_name(f"{self.path.name}.trace{slot.index}")

    def new_trace(self, slot: Slot) -> FileIO:
        """That file, new and empty: a file in its place is removed, never written to. Raises ``OSError``."""
        self.trace(slot).unlink(missing_ok=True)
        return FileIO(self.trace(slot), "x")

    def stacks(self, slot: Slot) -> Path:
        """The file to which the process in this slot writes its stacks when asked."""
        return self.path.with_name(f"{self.path.name}.stacks{slot.index}")

    def new_stacks(self, slot: Slot) -> FileIO:
        """That file, new and empty, as in ``new_trace``; opened to append. Raises ``OSError``."""
        path = self.stacks(slot)
        path.unlink(missing_ok=True)
        return FileIO(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "ab")

    def totals(self) -> Totals:
        """Jobs done, failed and released since the pool started."""
        totals = self.header.totals
        for slot in self.of(Role.WORKER):
            totals = totals.plus(slot.totals)
        return totals

    def unlink(self) -> None:
        """Remove the file and those beside it; existing mappings stay valid."""
        remove(self.path)

    def _slot(self, index: int) -> Slot:
        base = _PAGE + index * self._step
        slot = Slot(self.memory, base)
        slot.index = index
        slot.hands = self._hand(slot, 0), self._hand(slot, 1)
        slot.place = StepPlace(self.memory, base + Slot.size + 2 * AREA)
        beside = f"{self.path}.{index}"
        slot.lanes = Lanes(self.memory, base + _SLOT, self.lanes, beside) if self.lanes else None
        return slot

    def _hand(self, slot: Slot, number: int) -> HeldJobs:
        return HeldJobs(self.memory, slot.base + Slot.size + number * AREA, f"{self.path}.{slot.index}.{number}")


def _lanes_of(header: Header, size: int) -> int | None:
    """How many lanes the slots of a file of this size have; ``None`` if no board has this size.

    No field holds the number: a job that overwrote such a field would make the board unreadable for all processes.
    (A file truncated by one page a slot looks as if it had a lane less; a job that does this could also write to it.)
    """
    step, rest = divmod(size - _PAGE, capacity) if (capacity := header.capacity) > 0 else (0, 1)
    return None if rest else lanes_in(step - _SLOT)


def remove(path: Path) -> None:
    """Remove a board's file, readable or not, and the files beside it."""
    for each in (path, *path.parent.glob(f"{path.name}.*")):
        each.unlink(missing_ok=True)


def is_guarded(path: Path) -> bool:
    """Whether the master or the steward of a board, which may be of any version, runs. Raises ``OSError``."""
    if BoardName.parsed(path).has_master:
        return True
    try:
        fd = os.open(path, os.O_RDONLY | _FLAGS)
    except PermissionError:
        return False
    try:
        return file_lock.holder(fd) is not None
    finally:
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove files beside boards that no longer exist, if their masters are dead: their directory had been removed."""
    for beside in folder.glob("board.*.*"):
        board = beside.with_name(".".join(beside.name.split(".")[:2]))
        if not board.exists() and not BoardName.parsed(board).has_master:
            beside.unlink(missing_ok=True)


def overdue(slot: Slot, now: float, grace: float, margin: float = LEASE_MARGIN) -> Killed | None:
    """Why this process must be killed now; ``None`` if it need not be. All in seconds; ``now`` is monotonic."""
    deadline, lease_end = slot.deadline, slot.lease_deadline  # each read once: the worker may change them in between
    if slot.lanes and (first := slot.lanes.deadline) and now >= first + 2 * grace:  # its alarm was due a grace earlier
        return Killed.OVERDUE
    if deadline and now >= deadline + grace:
        runs_one = bool(lease_end) and not slot.lanes
        return Killed.OVERDUE if runs_one or slot.state == State.STARTING else Killed.STALLED
    if lease_end and now >= lease_end - margin:
        return Killed.LEASE
    ordered = kill_at(slot)
    return Killed.CANCELLED if ordered and now >= ordered else None


def next_deadline(slot: Slot, grace: float) -> float:
    """The monotonic time at which to check the process again; infinity when nothing is due."""
    deadline, lease_end = slot.deadline, slot.lease_deadline
    due = [deadline + grace] if deadline else []
    if slot.lanes and (first := slot.lanes.deadline):
        due.append(first + 2 * grace)
    if lease_end:
        due.append(lease_end - LEASE_MARGIN)
    if ordered := kill_at(slot):
        due.append(ordered)
    return min(due, default=float("inf"))


class BoardName(NamedTuple):
    """A board's file name: which master made it, and on which system.

    It is trusted more than the board's content, which a job may have overwritten. ``start_time`` is the master's
    ``proc.start_time``; an empty ``boot`` or ``namespace`` is unknown.
    """

    pid: int
    start_time: int
    boot: str = ""
    namespace: str = ""

    @classmethod
    def of(cls, pid: int) -> BoardName:
        """The name of the board that this process, on this system, makes or has made."""
        return cls(pid, proc.start_time(pid), proc.boot(), proc.namespace())

    @classmethod
    def own(cls) -> BoardName:
        """The name of this process's own board."""
        return cls.of(os.getpid())

    @classmethod
    def parsed(cls, path: Path) -> BoardName:
        """The name in the path; zeros for what is not there."""
        pid, start_time, boot, namespace = (path.name.removeprefix("board.").split("-") + [""] * 4)[:4]
        are_numbers = all(part.isdecimal() and len(part) <= _MOST_DIGITS for part in (pid, start_time))
        numbers = (int(pid), int(start_time)) if are_numbers else (0, 0)
        return cls(*numbers, boot, namespace)

    def __str__(self) -> str:
        return f"board.{self.pid}-{self.start_time}-{self.boot}-{self.namespace}"

    @property
    def instance(self) -> str:
        """The id of this instance of the pool, from its master's start to its end; unique among all hosts."""
        return hashlib.blake2b(str(self).encode(), digest_size=6).hexdigest()

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the times on the board can be compared with our monotonic clock."""
        return self.boot == proc.boot()

    @property
    def is_of_this_system(self) -> bool:
        """Whether the pids on the board mean anything here: of this boot, and of this namespace of pids."""
        return self.is_of_this_boot and self.namespace == proc.namespace()

    @property
    def has_master(self) -> bool:
        """Whether that master runs, as far as its pid shows."""
        return self.is_of_this_system and proc.is_alive(self.pid, self.start_time)


class _UnreadHeldJobs(HeldJobs):
    """No steward settles a lone worker's jobs, so what is too large for the board need not be kept beside it."""

    def _file(self, number: int) -> Path:
        return Path(os.devnull)


def private_slot() -> Slot:
    """A slot on a board that no other process can see."""
    board = Board.private()
    slot = board.slots[0]
    hand = _UnreadHeldJobs(slot.memory, slot.base + Slot.size, str(board.path))
    slot.hands = hand, hand
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.start_time = os.getpid(), proc.start_time(os.getpid())
    return slot
