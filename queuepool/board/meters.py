"""A pool's meters: the counters of its slots, and what its steward has measured, in memory that its processes share.

The memory is not a file: nothing can truncate it, so a worker may write there for each job and never gets a SIGBUS.
The steward copies it to a file for all other readers (``steward/measure.py``).

It is laid out in words of eight bytes: the queues first, then an area for each slot. An area has a head, then 64 rows
of errors, then rows of jobs: 64, one more for each queue, and one for each queue's jobs without a row of their own. Row
0 of errors and of jobs is for all that finds no row at all. A row counts once its number is below that in the head: its
names are written before. The number of queues is known when the pool starts (``Shape``); unused rows take no memory.
"""

from __future__ import annotations

import mmap
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from struct import Struct
from typing import NamedTuple

from queuepool.board.fields import Slot
from queuepool.board.record import as_count

#: upper bounds of the buckets of run times, in seconds; one more bucket has what took longer
RUN_BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
#: the same of waits
WAIT_BOUNDS = (
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
#: the name that stands for all jobs, or errors, beyond those that have a row of their own
OTHER = "_other"
#: why a worker left
EXITS = ("max_jobs", "max_time", "memory", "restart", "stop", "crash", "timeout", "lease", "killed")
OUTCOMES = ("done", "released", "failed", "given_back")
LOSSES = ("timeout", "crash", "memory", "lease", "cancelled")
#: as what flows end
FLOW_ENDS = ("done", "failed", "cancelled", "expired")

WORD = 8
#: rows of errors, with the one for the others; and of jobs, without those for the queues
ROWS = 64

#: words of the head: attempts begun; workers that have entered; how the attempt is about to end; the row of the
#: attempt begun last; Unix time minus monotonic time, as the worker saw them; when it was found dead (monotonic); rows
#: of jobs and of errors in use
BEGUN, ENTERED, ENDING, ROW, CLOCKS, DIED, JOB_ROWS, ERROR_ROWS = range(8)
#: the first of the exits, by reason
FIRST_EXIT = 8
#: of a worker that runs jobs side by side: which attempt was counted last, or is about to be (``key_of``)
COUNTED = 32
#: the first of the flows that it has ended, by ``FLOW_ENDS``; also among the pool's words, for its steward
FIRST_FLOW_END = 40
HEAD = 256

#: of a job's row: when it was first used (monotonic), the totals of run times and waits, all in seconds
FIRST_USED, RUN_TOTAL, WAIT_TOTAL = range(3)
FIRST_LOSS = 3
#: workers that left at their memory limit and had grown most in runs of this job
OUTGROWN = FIRST_LOSS + len(LOSSES)
FIRST_WAIT = OUTGROWN + 1
FIRST_WAY = FIRST_WAIT + len(WAIT_BOUNDS) + 1
#: how an attempt may end: by its worker, or (from ``LOST`` on) for a reason in ``LOSSES``; each has its run times
WAYS = (*OUTCOMES, *OUTCOMES[1:])
DONE, RELEASED, FAILED, GIVEN_BACK = range(len(OUTCOMES))
LOST = len(OUTCOMES)
#: what is added to a way for the same outcome of an attempt that was lost
AS_LOST = LOST - RELEASED
#: the word ``ENDING`` is a number in this base, of the attempt, the reason and the way
_ENDING_BASE = 8
RUN_BUCKETS = len(RUN_BOUNDS) + 1
JOB_NUMBERS = FIRST_WAY + len(WAYS) * RUN_BUCKETS
JOB_STRUCT = Struct(f"=3d{JOB_NUMBERS - 3}q")

#: texts: two bytes of length, then UTF-8
QUEUE_TEXT, JOB_TEXT, ERROR_TEXT = 208, 192, 208
JOB_ROW = JOB_NUMBERS + (QUEUE_TEXT + JOB_TEXT) // WORD
#: of an error's row: when it was first used, how many
ERROR_NUMBERS = 2
ERROR_STRUCT = Struct("=dq")
ERROR_ROW = ERROR_NUMBERS + (JOB_TEXT + ERROR_TEXT) // WORD

FIRST_ERROR = HEAD
FIRST_JOB = FIRST_ERROR + ROWS * ERROR_ROW


class Rows(NamedTuple):
    """One kind of rows. ``used``: the word of the head with their number. ``first``: their first word.

    ``words``: the words of each. ``numbers``: the layout of a row's numbers; the first ``times`` of them are seconds,
    and the very first is when the row was first used. ``texts``: the bytes of its names.
    """

    used: int
    first: int
    words: int
    numbers: Struct
    times: int
    texts: tuple[int, int]


JOBS = Rows(JOB_ROWS, FIRST_JOB, JOB_ROW, JOB_STRUCT, 3, (QUEUE_TEXT, JOB_TEXT))
ERRORS = Rows(ERROR_ROWS, FIRST_ERROR, ERROR_ROW, ERROR_STRUCT, 1, (JOB_TEXT, ERROR_TEXT))

#: the first of the pool's words
MAGIC = 0x71756575_4D000005
#: ``QUEUES``: those whose names are written; ``ROOM``: those that there is room for
POOL_MAGIC, CAPACITY, PUBLISHED, OUTAGES, FAILED_JOBS, QUEUES, ROOM = range(7)
#: flows of the store that are under way, their members that have not begun, when the oldest of them was created, and
#: when that was measured, in Unix seconds; 0 = never
FLOWS, FLOW_MEMBERS, FLOWS_SINCE, FLOWS_MEASURED = range(7, 11)
#: rows of limits in use
LIMITS = 11
#: limits that have rows, and the first word of these; of a limit: number, places held, parked, whether that is a lower
#: bound, how long the first job has waited, how long a place has been free though jobs wait; its name
MOST_LIMITS, FIRST_LIMIT = 20, 64
LIMIT_STRUCT, LIMIT_TEXT = Struct("=4q2d"), 72
LIMIT_NUMBERS = 6
LIMIT_ROW = LIMIT_NUMBERS + LIMIT_TEXT // WORD
FIRST_QUEUE = FIRST_LIMIT + MOST_LIMITS * LIMIT_ROW
#: more queues than any pool has: a file that claims more has been overwritten
MAX_QUEUES = 100_000
#: queues that have rows in a slot's area, which is 3.4 MB of addresses then: the system must grant them for all slots
MOST_ROWS = 1000
#: of a queue: ready, delayed, reserved, quarantined, parked, whether these are lower bounds, oldest, overdue, measured
#: at; the digest of the job that was seen last as the next one, and since when (monotonic); its name
QUEUE_STRUCT, FIRST_SEEN, SEEN_STRUCT = Struct("=6q3d"), 9, Struct("=16sd")
QUEUE_NUMBERS = 12
QUEUE_ROW = QUEUE_NUMBERS + QUEUE_TEXT // WORD

EXITS_STRUCT = Struct(f"={len(EXITS)}q")
FLOW_ENDS_STRUCT = Struct(f"={len(FLOW_ENDS)}q")
_LENGTH = Struct("=H")


class Shape(NamedTuple):
    """The layout of the meters of a board with ``capacity`` slots, for a pool of so many ``queues``."""

    capacity: int
    queues: int

    @property
    def size(self) -> int:
        """Bytes of the whole."""
        return self.area_at(self.capacity)

    @property
    def area(self) -> int:
        """Bytes of a slot's area."""
        return (FIRST_JOB + self.job_rows * JOB_ROW) * WORD

    @property
    def own_rows(self) -> int:
        """Rows of a slot for a queue and a job each, with row 0."""
        return ROWS + self.shared_rows

    @property
    def shared_rows(self) -> int:
        """Rows of a slot for all jobs of a queue that have no row of their own."""
        return min(self.queues, MOST_ROWS)

    @property
    def job_rows(self) -> int:
        """Rows of jobs of a slot."""
        return self.own_rows + self.shared_rows

    def area_at(self, index: int) -> int:
        """The byte at which the area of this slot begins; of slot 0, at which the queues end."""
        return (FIRST_QUEUE + self.queues * QUEUE_ROW) * WORD + index * self.area

    def most(self, kind: Rows) -> int:
        """Rows of this kind in an area."""
        return self.job_rows if kind is JOBS else ROWS


def packed_text(text: str, room: int) -> bytes:
    """The text as bytes, cut to what fits into ``room`` bytes."""
    raw = text.encode("utf-8", "replace")[: room - _LENGTH.size].decode("utf-8", "ignore").encode()
    return _LENGTH.pack(len(raw)) + raw


def text_in(raw: bytes, place: int, room: int) -> str:
    """The text that ``packed_text`` wrote into the ``room`` bytes from ``place`` on; any bytes give some text."""
    (length,) = _LENGTH.unpack_from(raw, place)
    first = place + _LENGTH.size
    return raw[first : min(first + length, place + room)].decode("utf-8", "replace")


def cell_at(row: int, way: int, duration: float) -> int:
    """The word that counts attempts of this row that ended in this way after so many seconds."""
    return FIRST_JOB + row * JOB_ROW + FIRST_WAY + way * RUN_BUCKETS + bisect_left(RUN_BOUNDS, duration)


def cells_of(row: int) -> slice:
    """The words of this row that count attempts, by way and run time."""
    first = FIRST_JOB + row * JOB_ROW + FIRST_WAY
    return slice(first, first + len(WAYS) * RUN_BUCKETS)


def lost_cells_of(row: int) -> slice:
    """The same for attempts that were lost."""
    cells = cells_of(row)
    return slice(cells.start + LOST * RUN_BUCKETS, cells.stop)


def losses_of(row: int) -> slice:
    """The words of this row that count losses, by reason."""
    first = FIRST_JOB + row * JOB_ROW + FIRST_LOSS
    return slice(first, first + len(LOSSES))


class MeterMemory(mmap.mmap):
    """The memory, with its shape kept beside it: a job may have overwritten what it holds.

    ``is_published``: whether others may read it and waits are measured (``metrics = yes``).
    """

    shape: Shape
    is_published: bool

    @classmethod
    def new(cls, capacity: int, queues: int, *, is_published: bool = True) -> MeterMemory:
        """Meters of a board with so many slots and of so many queues, for all later children. Raises ``OSError``."""
        shape = Shape(capacity, min(queues, MAX_QUEUES))
        memory = cls(-1, shape.size)
        memory.shape, memory.is_published = shape, is_published
        words = memoryview(memory).cast("q")
        words[POOL_MAGIC], words[CAPACITY], words[ROOM] = MAGIC, capacity, shape.queues
        return memory


class SlotMeters:
    """The meters of one slot, written by its worker and, after the worker's death, by the steward.

    They belong to the slot, not to its process: the next worker goes on with the same numbers.

    Each attempt that has begun counts exactly once, whichever process is killed between any two writes, since every
    count is one store of eight bytes and the number of attempts that have *ended* is not a field: it is the sum of all
    cells, one for each way to end and bucket of run times. So one store ends an attempt, and records all of that. The
    worker raises ``begun`` before an attempt; ``begun - ended`` is 1 until it has been counted, then 0.

    The steward counts the last attempt of a dead worker if that difference is 1. Losses by reason are counted likewise:
    the sum of their reasons is raised first, and is then one more than the sum of the cells of lost attempts. Exits
    too: ``entered`` is raised by each new worker, and exceeds the sum of the exits until it has left.

    How an attempt ended is known from the board: the stage of the held job. Only for one that is settled (``SETTLED``)
    must the verdict be noted here before that stage is (``ending``).
    """

    def __init__(self, memory: MeterMemory | None, slot: Slot) -> None:
        """Without a ``memory`` (a lone worker, another pool's board) the meters are private and never read."""
        place = slot.index if memory else 0
        memory = memory or MeterMemory.new(1, 0, is_published=False)
        first = memory.shape.area_at(place)
        self._memory = memory
        self._shape = memory.shape
        self._first = first
        self._slot = slot
        self.is_published = memory.is_published
        view = memoryview(memory)[first : first + self._shape.area]
        self.words, self.reals = view.cast("q"), view.cast("d")

    def enter(self) -> None:
        """By a new worker: no attempt of an earlier one is left to be counted, and this worker has yet to leave."""
        self.words[JOB_ROWS] = max(1, self._used(JOBS))
        self.words[BEGUN] = self._ended()
        self.words[DIED] = 0
        self.words[ENTERED] = self._exits() + 1

    def leave(self, reason: str) -> None:
        """Count the worker's exit, unless it is counted already."""
        if self._exits() < self.words[ENTERED]:
            self.words[FIRST_EXIT + EXITS.index(reason)] += 1

    def job_row(self, queue: str, job: str) -> int:
        """The row of these jobs, made if there is room; else that of the queue's other jobs, or of all others."""
        row = self._row(JOBS, self._shape.own_rows, queue, job)
        return row or self._row(JOBS, self._shape.job_rows, queue, OTHER)

    def count_error(self, job: str, error: str) -> None:
        """Count an exception of this class, raised by this job."""
        row = self._row(ERRORS, ROWS, job, error)
        self.words[FIRST_ERROR + row * ERROR_ROW + 1] += 1

    def count_flow(self, state: str) -> None:
        """The worker has ended a flow, which has become this."""
        self.words[FIRST_FLOW_END + FLOW_ENDS.index(state)] += 1

    def count_outgrown(self, row: int) -> None:
        """The worker leaves at its memory limit, and has grown most in runs of this row's jobs."""
        self.words[FIRST_JOB + row * JOB_ROW + OUTGROWN] += 1

    @property
    def is_open(self) -> bool:
        """Whether an attempt has begun that is not counted yet."""
        return int(self.words[BEGUN]) == self._ended() + 1

    def counted_last(self) -> int:
        """The key of the attempt that was counted last; 0 if that count is not complete, which is then forgotten."""
        if self.is_open:
            self.words[COUNTED] = 0  # first: once it is forgotten, its key would say that it is counted
            self.forget()
            return 0
        return int(self.words[COUNTED])

    def count(self, key: int, names: tuple[str, str], way: int, reason: str, duration: float) -> None:
        """Count an attempt of a worker that ran several; ``names`` of its queue and job, the rest as in ``intend``."""
        self.words[ROW] = self.job_row(*names)
        self.words[BEGUN] = self._ended() + 1
        self.words[COUNTED] = key  # only now: before that, the attempt must not look counted
        self.intend(way, reason)
        self.end(duration)

    def forget(self) -> None:
        """The attempt begun last never ran: its worker died at once, and it was given back as not begun."""
        self.words[BEGUN] = self._ended()

    def intend(self, way: int, reason: str = "") -> None:
        """Before the job is marked as settled: its attempt ends this way; ``reason`` for those from ``LOST`` on."""
        loss = LOSSES.index(reason) if reason else 0
        self.words[ENDING] = (self.words[BEGUN] * _ENDING_BASE + loss) * _ENDING_BASE + way

    @property
    def intended(self) -> tuple[int, int] | None:
        """The way in which the last attempt is to end, and the number of the reason; ``None`` if none is noted."""
        ending, way = divmod(self.words[ENDING], _ENDING_BASE)
        begun, loss = divmod(ending, _ENDING_BASE)
        is_valid = begun == self.words[BEGUN] and way < len(WAYS) and loss < len(LOSSES)
        return (way, loss) if is_valid else None

    def end(self, duration: float) -> None:
        """Count the attempt begun last, as intended, here and then on the board. ``duration`` in seconds."""
        way, loss = self.intended or (GIVEN_BACK, 0)
        row = self.words[ROW]
        row = row if 0 <= row < self._shape.job_rows else 0
        if way >= LOST and self._sum(losses_of) == self._sum(lost_cells_of):
            self.words[losses_of(row).start + loss] += 1
        self.words[cell_at(row, way, duration)] += 1
        self._show(way)
        self.reals[FIRST_JOB + row * JOB_ROW + RUN_TOTAL] += duration

    def _show(self, way: int) -> None:
        """Show it on the board, at once. (``HeldBatch`` shows a done job, before its hooks are called.)"""
        outcome = way - AS_LOST if way >= LOST else way
        if outcome == FAILED:
            self._slot.failed = as_count(self._slot.failed) + 1
        elif outcome == RELEASED:
            self._slot.released = as_count(self._slot.released) + 1

    def note_death(self) -> None:
        """The worker has been found dead now, if it had not been before."""
        if not self.reals[DIED]:
            self.reals[DIED] = time.monotonic()

    def run_time(self, since: float, until: float = 0.0) -> float:
        """Seconds from ``since`` (Unix) ``until`` then (monotonic), by default until the worker was found dead."""
        began = since - self.reals[CLOCKS]
        return max(0.0, (until or self.reals[DIED]) - began) if isfinite(began) else 0.0

    def _ended(self) -> int:
        return self._sum(cells_of)

    def _sum(self, part: Callable[[int], slice]) -> int:
        """The sum of this part of each row of jobs."""
        return sum(sum(self.words[part(row)]) for row in range(self._used(JOBS)))

    def _exits(self) -> int:
        return sum(self.words[FIRST_EXIT : FIRST_EXIT + len(EXITS)])

    def _used(self, kind: Rows) -> int:
        """The number of rows in use, with that for the others; 0 before the first."""
        count = self.words[kind.used]
        return count if 0 <= count <= self._shape.most(kind) else 0

    def _row(self, kind: Rows, most: int, *names: str) -> int:
        """The row with these names, made while fewer than ``most`` are in use; else 0."""
        raw = [packed_text(name, size) for name, size in zip(names, kind.texts, strict=True)]
        used = max(1, self._used(kind))
        for row in range(1, used):
            if all(self._memory[place : place + len(text)] == text for place, text in self._texts(kind, row, raw)):
                return row
        return self._made(kind, used, raw) if used < most else 0

    def _made(self, kind: Rows, row: int, raw: Sequence[bytes]) -> int:
        """A new row; its number is written last, so that no reader sees half a name."""
        for place, text in self._texts(kind, row, raw):
            self._memory[place : place + len(text)] = text
        self.reals[kind.first + row * kind.words] = time.monotonic()
        self.words[kind.used] = row + 1
        return row

    def _texts(self, kind: Rows, row: int, raw: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """Each text with its place in the memory."""
        place = self._first + (kind.first + row * kind.words) * WORD + kind.numbers.size
        for text, size in zip(raw, kind.texts, strict=True):
            yield place, text
            place += size
