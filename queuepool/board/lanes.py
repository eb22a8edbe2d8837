"""A slot's lanes: the jobs that one worker runs side by side, each with its lease, its stage and its facts.

A board has the same number of lanes in each slot, none unless its pool asks for them. Each lane is a unit of its own:
what one worker holds are the lanes that are not free, in no order. The layout, behind the rest of the slot: a word that
says which lane has the processor; columns of one word for each lane, so that one read has a fact of all; then a page
for each lane with its texts and its receipt.

A worker fills a lane while the lane is free, and sets its stage last. It raises the lane's turn first, so that nothing
that another process has for the lane's last job is taken for the next one's. Any bits may be found here: what no worker
can have written is not read as a job, and its lease ends by itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import IntEnum
from functools import cached_property
from math import isfinite
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

from queuepool.board.held_jobs import BEGUN, Stage
from queuepool.board.record import DAMAGED, Record, Text, as_count
from queuepool.board.running import SAYS_0, fraction_of
from queuepool.board.shared_file import SharedFile
from queuepool.payload.lease import Lease, LeaseRow

#: most lanes of a slot: of 1,000 jobs that run, and of some that are done and wait to be deleted
MOST_LANES = 2048
_WORD, _PAGE = 8, 4096
#: words before the columns
_HEAD = 8
#: which lane has the processor, plus one; since when (monotonic); for how many seconds the loop has been free, counted
#: while a job is told to end; the identity of the loop's thread
ON_CPU, ON_CPU_SINCE, FREE, THREAD = range(4)
#: the columns: those that the worker writes, then those of the steward; ``begin`` clears all but the first
(
    _TURN, _STAGE, _LEASE_END, _DEADLINE, _SINCE, _ATTEMPT, _COUNTED, _TRACK, _PROGRESS, _TOLD, _THREADS, _SUSPECT,
    _RENEWED_TURN, _RENEWED_END, _ORDER, _COLUMNS,
) = range(16)  # fmt: skip
#: the stage of a lane that holds nothing
_FREE = 0
#: the stages of a lane that holds a job
_HELD = frozenset(map(int, (Stage.RESERVED, Stage.READING, Stage.RUNNING, Stage.DONE)))
#: plain numbers take less time to write than enum members
_RESERVED, _RUNNING = int(Stage.RESERVED), int(Stage.RUNNING)
#: of a lease: the size of its receipt, its tag, whether it has a row, and that row
_LEASE = Struct("=5q")
#: a word with an order is a number in this base, of the turn that it is for and the order
_ORDERS = 8


class LaneOrder(IntEnum):
    """What the steward tells a worker about the job in one lane."""

    CANCEL = 1
    #: another worker may have the job
    LOST = 2


class HeldLane(NamedTuple):
    """One held job; the rest is known once it has begun. The fields are those of ``Slot``."""

    lane: int
    turn: int
    lease: Lease
    stage: Stage
    policy: str = ""
    job: str = ""
    job_id: str = ""
    attempt: int = 0
    since: float = 0.0
    deadline: float = 0.0
    track: float = 0.0
    progress: float | None = None
    note: str = ""
    #: as last renewed (monotonic); 0.0 = nobody need be killed for it
    lease_end: float = 0.0
    #: whether the meters have counted its attempt
    counted: bool = False
    #: how long the loop had been free when it told the job to end (``FREE``); 0.0: it has not told it
    told: float = 0.0
    #: how many threads are at work for it
    threads: int = 0
    #: whether it may have ended another worker
    is_suspect: bool = False


def key_of(lane: int, turn: int) -> int:
    """What tells this use of the lane from all others."""
    return turn * MOST_LANES + lane


class LaneJobs(NamedTuple):
    """What all jobs of one name and one plan have in common; a lane writes it only if its last job was of another.

    ``policy`` is the plan's text, ``track`` in seconds.
    """

    policy: str
    job: str
    track: float = 0.0


def finite(value: float) -> float:
    """The seconds, or 0.0 for what are none."""
    return value if isfinite(value) else 0.0


class _LanePage(Record):
    """The texts of one lane; its lease follows them."""

    policy = Text(2000)
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    note = Text(200)


#: the largest receipt on the page; a larger one is a file beside the board
INLINE = _PAGE - _LanePage.size - _LEASE.size


def lanes_size(count: int) -> int:
    """The bytes of a slot's lanes: whole pages, and none without lanes."""
    return (_first_page(count) + count * _PAGE) if count else 0


def _first_page(count: int) -> int:
    return -(-(_HEAD + _COLUMNS * count) * _WORD // _PAGE) * _PAGE


def lanes_in(size: int) -> int | None:
    """How many lanes have this size; ``None`` if no number has."""
    return next((count for count in range(MOST_LANES + 1) if lanes_size(count) == size), None)


class Lanes:
    """The lanes of one slot; any process may read them. ``spill``: the first part of the names of files beside it."""

    def __init__(self, memory: Any, base: int, count: int, spill: Path) -> None:
        self.memory = memory
        self.count = count
        self._base = base
        self._spill = spill

    @cached_property
    def wholes(self) -> Any:
        """The head and the columns as whole numbers."""
        return self._words("q")

    @cached_property
    def reals(self) -> Any:
        """The same words as seconds."""
        return self._words("d")

    @property
    def on_cpu(self) -> int | None:
        """The lane whose code runs at this moment, or ran when the process died; ``None`` = none, the loop waits."""
        lane = self.wholes[ON_CPU] - 1
        return lane if 0 <= lane < self.count else None

    @property
    def on_cpu_since(self) -> float:
        """When that lane's step began (monotonic)."""
        return finite(self.reals[ON_CPU_SINCE])

    @property
    def free(self) -> float:
        """For how many seconds the loop has been free while a job was told to end."""
        return finite(self.reals[FREE])

    @property
    def thread(self) -> int:
        """The identity of the loop's thread."""
        return int(self.wholes[THREAD])

    @property
    def is_empty(self) -> bool:
        """Whether no lane holds a job."""
        return _HELD.isdisjoint(self._column(_STAGE))

    @property
    def lease_deadline(self) -> float:
        """The monotonic time at which the first lease ends, as last renewed; 0.0 = no job runs that it could be of."""
        found = self._columns()
        lanes = zip(*map(found.column, (_TURN, _RENEWED_TURN, _STAGE)), strict=True)
        times = zip(*map(found.times, (_LEASE_END, _RENEWED_END)), strict=True)
        ends = [
            renewed if renewed and renewed_turn == turn else end
            for (turn, renewed_turn, stage), (end, renewed), turn_now in zip(
                lanes, times, self._column(_TURN), strict=True
            )
            # A lane that was filled meanwhile has a fresh lease.
            if end and stage in _HELD and turn == turn_now
        ]
        return min(filter(isfinite, ends), default=0.0)

    @property
    def deadline(self) -> float:
        """The monotonic time of the first deadline of a job that runs; 0.0 = none."""
        found = self._columns()
        return min(filter(None, (found.seconds(_DEADLINE, lane) for lane in found.held())), default=0.0)

    def mark_counted(self, lane: int) -> None:
        """By the steward: the meters have counted this attempt."""
        self.wholes[self._at(_COUNTED, lane)] = 1

    def held(self) -> list[HeldLane]:
        """The held jobs, but not those of damaged lanes, nor of lanes that were filled or emptied during the read."""
        before = self._columns()
        found = [one for lane in before.held() if (one := self._read(before, lane))]
        after = self._columns()
        return [one for one in found if after.turn(one.lane) == one.turn and after.stage(one.lane) in _HELD]

    def mark(self, lane: int, stage: Stage) -> None:
        """By the steward, once the worker is dead: set the stage of a held job."""
        self.wholes[self._at(_STAGE, lane)] = int(stage)

    def renew(self, lane: int, turn: int, end: float) -> None:
        """By the steward: the lease of the job that had this turn ends at ``end`` (monotonic)."""
        self.reals[self._at(_RENEWED_END, lane)] = end
        self.wholes[self._at(_RENEWED_TURN, lane)] = turn

    def order(self, lane: int, turn: int, order: LaneOrder) -> None:
        """By the steward: an order to the job that had this turn."""
        self.wholes[self._at(_ORDER, lane)] = turn * _ORDERS + order

    def orders(self) -> list[tuple[int, LaneOrder]]:
        """By the worker: the orders to the jobs that it holds."""
        found = self._columns()
        orders = [(lane, found.order(lane)) for lane in found.held()]
        return [(lane, order) for lane, order in orders if order]

    def clear(self) -> None:
        """By the master, before the fork: hold nothing. The turns go on, so that no late word hits the next worker."""
        self.memory[self._base : self._base + _HEAD * _WORD] = bytes(_HEAD * _WORD)
        first = self._base + self._at(_STAGE, 0) * _WORD
        self.memory[first : self._base + self._size] = bytes(self._base + self._size - first)

    @property
    def _size(self) -> int:
        """Bytes of the head and the columns."""
        return (_HEAD + _COLUMNS * self.count) * _WORD

    def page_at(self, lane: int) -> int:
        """The place of this lane's page in the memory."""
        return self._base + _first_page(self.count) + lane * _PAGE

    def file(self, lane: int) -> Path:
        """Where this lane's receipt is if it is large."""
        return self._spill.with_name(f"{self._spill.name}.lane{lane}")

    def _at(self, column: int, lane: int) -> int:
        return _HEAD + column * self.count + lane

    def _words(self, code: str) -> Any:
        if isinstance(self.memory, SharedFile):
            return self.memory.words(self._base, code)
        return memoryview(self.memory)[self._base : self._base + self._size].cast(code)  # type: ignore[call-overload]

    def _column(self, column: int) -> array[int]:
        first = self._base + self._at(column, 0) * _WORD
        return array("q", self.memory[first : first + self.count * _WORD])

    def _columns(self) -> _Columns:
        first = self._base + _HEAD * _WORD
        return _Columns(self.memory[first : self._base + self._size], self.count)

    def _read(self, columns: _Columns, lane: int) -> HeldLane | None:
        """The job in this lane; ``None`` if that is damaged, or its file is gone."""
        at = self.page_at(lane)
        raw = bytes(self.memory[at : at + _PAGE])
        page = _LanePage(raw, 0)
        try:
            size, tag, has_row, row, attempts = _LEASE.unpack_from(raw, _LanePage.size)
            lease = Lease(page.queue, self._receipt(lane, raw, size), tag, LeaseRow(row, attempts) if has_row else None)
        except (OSError, *DAMAGED):
            return None
        held = HeldLane(lane, columns.turn(lane), lease, Stage(columns.stage(lane)))
        if held.stage not in BEGUN:  # the facts may still be those of the lane's last job
            return held
        return held._replace(
            policy=page.policy,
            job=page.job,
            job_id=page.job_id,
            attempt=as_count(columns.whole(_ATTEMPT, lane)),
            since=columns.seconds(_SINCE, lane),
            deadline=columns.seconds(_DEADLINE, lane),
            track=columns.seconds(_TRACK, lane),
            progress=fraction_of(columns.seconds(_PROGRESS, lane)),
            note=page.note,
            lease_end=columns.lease_end(lane),
            counted=bool(columns.whole(_COUNTED, lane)),
            told=columns.seconds(_TOLD, lane),
            threads=as_count(columns.whole(_THREADS, lane)),
            is_suspect=bool(columns.whole(_SUSPECT, lane)),
        )

    def _receipt(self, lane: int, raw: bytes, size: int) -> bytes:
        first = _PAGE - INLINE
        receipt = raw[first : first + size] if 0 <= size <= INLINE else self.file(lane).read_bytes()
        if len(receipt) != size:
            raise ValueError(f"a receipt of {size} bytes in a lane")
        return receipt


class _Columns:
    """The columns as they were at one moment; each number is as it was, but two may be of different moments."""

    def __init__(self, raw: bytes, count: int) -> None:
        self._wholes, self._reals = array("q", raw), array("d", raw)
        self._count = count

    def whole(self, column: int, lane: int) -> int:
        return self._wholes[column * self._count + lane]

    def seconds(self, column: int, lane: int) -> float:
        value = self._reals[column * self._count + lane]
        return value if isfinite(value) else 0.0

    def turn(self, lane: int) -> int:
        return self.whole(_TURN, lane)

    def stage(self, lane: int) -> int:
        return self.whole(_STAGE, lane)

    def held(self) -> Iterator[int]:
        """The lanes that hold a job."""
        return (lane for lane in range(self._count) if self.stage(lane) in _HELD)

    def column(self, column: int) -> array[int]:
        return self._wholes[column * self._count : (column + 1) * self._count]

    def times(self, column: int) -> array[float]:
        return self._reals[column * self._count : (column + 1) * self._count]

    def lease_end(self, lane: int) -> float:
        """When its lease ends, as last renewed; 0.0 if nobody need be killed for it."""
        end = self.seconds(_LEASE_END, lane)
        is_renewed = self.whole(_RENEWED_TURN, lane) == self.turn(lane)
        return self.seconds(_RENEWED_END, lane) or end if end and is_renewed else end

    def order(self, lane: int) -> LaneOrder | None:
        turn, order = divmod(self.whole(_ORDER, lane), _ORDERS)
        return LaneOrder(order) if turn == self.turn(lane) and order in list(LaneOrder) else None


class LaneWriter:
    """Used by the slot's worker alone, with the board mapped into its memory."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._memory = lanes.memory
        self._wholes, self._reals = lanes.wholes, lanes.reals
        self._pages = [_LanePage(lanes.memory, lanes.page_at(lane)) for lane in range(lanes.count)]
        first = [_HEAD + column * lanes.count for column in range(_COLUMNS)]
        self._turn, self._stage, self._lease_end, self._deadline = first[_TURN : _DEADLINE + 1]
        self._since, self._attempt, self._counted, self._track, self._progress = first[_SINCE : _PROGRESS + 1]
        self._told, self._threads, self._suspect = first[_TOLD : _SUSPECT + 1]
        # What the pages say: most jobs are like the one before.
        self._jobs: list[LaneJobs | None] = [None] * lanes.count
        self._queues = [""] * lanes.count
        self._has_progress = [True] * lanes.count  # perhaps of the slot's last worker

    def take(self, lane: int, lease: Lease, lease_end: float) -> None:
        """Hold this job in a free lane until ``lease_end`` (monotonic). If ``OSError`` is raised, it stays free."""
        wholes = self._wholes
        wholes[self._turn + lane] = as_count(wholes[self._turn + lane]) + 1
        if lease.queue != self._queues[lane]:
            self._pages[lane].queue = self._queues[lane] = lease.queue
        self._write(lane, lease)
        wholes[self._counted + lane] = wholes[self._suspect + lane] = wholes[self._threads + lane] = 0
        self._reals[self._told + lane] = 0.0
        self._reals[self._lease_end + lane] = lease_end
        wholes[self._stage + lane] = _RESERVED

    def _write(self, lane: int, lease: Lease) -> None:
        size, inline = len(lease.receipt), lease.receipt
        if size > INLINE:
            self._lanes.file(lane).write_bytes(lease.receipt)
            inline = b""
        proof = (1, *lease.row) if lease.row else (0, 0, 0)
        raw = _LEASE.pack(size, lease.tag, *proof) + inline
        first = self._pages[lane].base + _LanePage.size
        self._memory[first : first + len(raw)] = raw

    def begins(self, lane: int, jobs: LaneJobs, *, job_id: str, attempt: int, since: float, deadline: float) -> None:
        """The held job is about to run; ``since`` in Unix seconds, ``deadline`` monotonic, 0.0 = none."""
        page, wholes, reals = self._pages[lane], self._wholes, self._reals
        if jobs is not self._jobs[lane]:
            self._jobs[lane] = jobs
            page.policy, page.job = jobs.policy, jobs.job
            reals[self._track + lane] = jobs.track
        if self._has_progress[lane]:
            self._has_progress[lane] = False
            reals[self._progress + lane], page.note = 0.0, ""
        page.job_id = job_id
        wholes[self._attempt + lane] = attempt
        reals[self._since + lane], reals[self._deadline + lane] = since, deadline
        wholes[self._stage + lane] = _RUNNING

    def mark(self, lane: int, stage: int) -> None:
        """Set the stage of the held job."""
        self._wholes[self._stage + lane] = stage

    def key(self, lane: int) -> int:
        """As of ``key_of``, for the job that it holds."""
        return key_of(lane, self._wholes[self._turn + lane])

    def told(self, lane: int) -> None:
        """The loop tells the job to end, and is free to do so."""
        self._reals[self._told + lane] = self._reals[FREE] = max(self._reals[FREE], 1e-9)

    def free_for(self, seconds: float) -> None:
        """The loop was free for so long, while a job was told to end."""
        self._reals[FREE] += seconds

    def counted(self, lane: int) -> None:
        """The meters have counted the attempt."""
        self._wholes[self._counted + lane] = 1

    def suspect(self, lane: int) -> None:
        """The job may have ended another worker."""
        self._wholes[self._suspect + lane] = 1

    def threads(self, lane: int, more: int) -> None:
        """So many more threads are at work for the job; negative: fewer."""
        self._wholes[self._threads + lane] += more

    def progress(self, lane: int, fraction: float, note: str) -> None:
        """Show how far the running job is, from 0 to 1."""
        self._has_progress[lane] = True
        self._pages[lane].note = note
        self._reals[self._progress + lane] = fraction or SAYS_0

    def ended(self, lane: int) -> None:
        """Nothing of the job runs any more: the worker need not be killed when its deadline or its lease ends."""
        self._reals[self._deadline + lane] = self._reals[self._lease_end + lane] = 0.0

    def free(self, lane: int) -> None:
        """Another worker may hold the job now, or it is deleted."""
        self._wholes[self._stage + lane] = _FREE
