"""A slot's lanes: the jobs that one worker runs side by side, each with its lease, its stage and its facts.

A board has the same number of lanes in each slot, none unless its pool asks for them. Each lane is a unit of its own:
the lanes that are not free are what a worker holds, in no order. The layout, behind the rest of the slot: a head with
words about the worker, such as which lane has the processor; columns of one word for each lane, so that one read has a
fact of all; then a page for each lane with its texts and its receipt; then for each lane how far its job's cursor is.

A worker fills a lane while the lane is free, and sets its stage last. It raises the lane's turn first, so that what
another process writes about the lane's last job is not applied to the next one. Any bits may be found here: a lane with
values that no worker can have written is not read as a job, and its lease expires.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from queuepool.board.held_jobs import BEGUN, Stage, fraction_of
from queuepool.board.lane_layout import (
    ATTEMPT,
    CANCEL_AT,
    CANCEL_DONE,
    CANCEL_GRACE,
    CANCEL_OBEYED,
    COLUMNS,
    COUNTED,
    DEADLINE,
    FREE,
    HEAD,
    HELD,
    INLINE,
    LEASE,
    LEASE_END,
    NATIVE,
    ON_CPU,
    ON_CPU_SINCE,
    ORDER,
    ORDERS,
    OWN_END,
    PAGE,
    PROGRESS,
    RENEWED_END,
    RENEWED_TURN,
    RULED,
    RULING,
    SETTLING,
    SINCE,
    STAGE,
    SUSPECT,
    THREAD,
    THREADS,
    TOLD,
    TRACK,
    TURN,
    WATCHED,
    WORD,
    LaneColumns,
    LanePage,
    first_page,
    first_place,
)
from queuepool.board.orders import CANCELS, CancelOrder
from queuepool.board.orders import LaneOrder as LaneOrder
from queuepool.board.record import DAMAGED, SharedFile, as_count
from queuepool.board.step_place import StepPlace
from queuepool.payload.lease import Lease, LeaseRow


class OwnEnd(IntEnum):
    """Why a worker ends itself while its loop's thread still runs jobs."""

    #: an exception in the main thread
    FAILED = 1
    #: a job has closed the worker's files
    BROKEN = 2


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
    #: as last renewed (monotonic); 0.0 = its end matters to no process
    lease_end: float = 0.0
    #: whether the meters have counted its attempt
    counted: bool = False
    #: how long the loop had been free when it told the job to end (``FREE``); 0.0: it has not
    told: float = 0.0
    #: how many threads are at work for it
    threads: int = 0
    #: whether it may have killed another worker
    is_suspect: bool = False


def finite(value: float) -> float:
    """The seconds; 0.0 if the value cannot be a time."""
    return value if isfinite(value) else 0.0


class Lanes:
    """The lanes of one slot; any process may read them. ``spill``: how the names of the files beside it begin."""

    def __init__(self, memory: Any, base: int, count: int, spill: str) -> None:
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
        """The lane whose code runs at this moment, or ran when the process died, or ``hook``.

        ``None``: the loop waits, or runs code that belongs to no job.
        """
        lane = self.wholes[ON_CPU] - 1
        return lane if 0 <= lane <= self.hook else None

    @property
    def hook(self) -> int:
        """Stands for the hook of a job that is over; not the number of a lane."""
        return self.count

    @property
    def common(self) -> int:
        """Stands for a task of no job, such as that of a client which a lifespan has opened for all of them."""
        return self.count + 1

    @property
    def is_common_on_cpu(self) -> bool:
        """Whether such a task has the processor; then ``on_cpu`` is ``None``, as a job may have caused that."""
        return bool(self.wholes[ON_CPU] - 1 == self.common)

    @property
    def on_cpu_since(self) -> float:
        """When that lane's step began (monotonic), or the last one if the loop waits."""
        return finite(self.reals[ON_CPU_SINCE])

    @property
    def watched(self) -> float:
        """For how many seconds of that step the main thread was seen to go on, so no thread held the GIL."""
        return max(finite(self.reals[WATCHED]) - self.on_cpu_since, 0.0)

    @property
    def free(self) -> float:
        """For how many seconds the loop has been free while a job was told to end."""
        return finite(self.reals[FREE])

    @property
    def thread(self) -> int:
        """The identity of the loop's thread."""
        return int(self.wholes[THREAD])

    @property
    def settling(self) -> int | None:
        """The lane whose job the main thread settles at this moment, or settled when the process died."""
        lane = self.wholes[SETTLING] - 1
        return lane if 0 <= lane < self.count else None

    @property
    def own_end(self) -> OwnEnd | None:
        """Why the worker ends itself; ``None``: it does not, or has not said so."""
        number = self.wholes[OWN_END]
        return OwnEnd(number) if number in list(OwnEnd) else None

    @property
    def are_tracked(self) -> bool:
        """Whether a job is tracked that is in a lane, or was the last one there."""
        return any(self.reals[self._at(TRACK, lane)] for lane in range(self.count))

    @property
    def native_thread(self) -> int:
        """The kernel's number of the loop's thread."""
        return int(self.wholes[NATIVE])

    @property
    def is_empty(self) -> bool:
        """Whether no lane holds a job."""
        return HELD.isdisjoint(self._column(STAGE))

    @property
    def lease_deadline(self) -> float:
        """The monotonic time at which the first lease ends, as last renewed; 0.0 = no job runs."""
        found = self._columns()
        lanes = zip(*map(found.column, (TURN, RENEWED_TURN, STAGE)), strict=True)
        times = zip(*map(found.times, (LEASE_END, RENEWED_END)), strict=True)
        ends = [
            renewed if renewed and renewed_turn == turn else end
            for (turn, renewed_turn, stage), (end, renewed), turn_now in zip(
                lanes, times, self._column(TURN), strict=True
            )
            # A lane that was filled meanwhile has a fresh lease.
            if end and stage in HELD and turn == turn_now
        ]
        return min(filter(isfinite, ends), default=0.0)

    @property
    def deadline(self) -> float:
        """The monotonic time of the first deadline of a job that runs; 0.0 = none."""
        found = self._columns()
        return min(filter(None, (found.seconds(DEADLINE, lane) for lane in found.held())), default=0.0)

    def mark_counted(self, lane: int) -> None:
        """By the steward: the meters have counted this attempt."""
        self.wholes[self._at(COUNTED, lane)] = 1

    def held(self) -> list[HeldLane]:
        """The held jobs, but not those of damaged lanes, nor of lanes that were filled or emptied during the read."""
        before = self._columns()
        found = [one for lane in before.held() if (one := self._read(before, lane))]
        after = self._columns()
        return [one for one in found if after.turn(one.lane) == one.turn and after.stage(one.lane) in HELD]

    def mark(self, lane: int, stage: Stage) -> None:
        """By the steward, once the worker is dead: set the stage of a held job."""
        self.wholes[self._at(STAGE, lane)] = int(stage)

    def rule(self, life: int, ruling: Mapping[int, int]) -> None:
        """By the steward, before it settles anything: record what becomes of each job of this dead incarnation.

        If the steward dies, the next one carries that out: a settled lane no longer shows what a ruling needs.
        """
        for lane in range(self.count):
            self.wholes[self._at(RULING, lane)] = ruling.get(lane, 0)
        self.wholes[RULED] = life  # last: until then nothing is ruled on

    def ruling(self, life: int) -> dict[int, int] | None:
        """What ``rule`` has written about this incarnation; ``None``: nothing, or not all of it."""
        if self.wholes[RULED] != life:
            return None
        return {lane: number for lane, number in enumerate(self._column(RULING)) if number}

    def renew(self, lane: int, turn: int, end: float) -> None:
        """By the steward: the lease of the job that had this turn ends at ``end`` (monotonic)."""
        self.reals[self._at(RENEWED_END, lane)] = end
        self.wholes[self._at(RENEWED_TURN, lane)] = turn

    def order(self, lane: int, turn: int, order: LaneOrder) -> None:
        """By the steward: an order to the job that had this turn."""
        self.wholes[self._at(ORDER, lane)] = turn * ORDERS + order

    def cancel(self, order: CancelOrder) -> None:
        """By whoever cancels, one at a time: an order, which counts once it is whole."""
        lane = order.number
        if self._columns().order(lane) is LaneOrder.LOST:
            return
        self.wholes[self._at(ORDER, lane)] = 0
        LanePage(self.memory, self.page_at(lane)).cancelled_by = order.by
        self.reals[self._at(CANCEL_AT, lane)] = order.at
        self.reals[self._at(CANCEL_GRACE, lane)] = order.grace
        self.order(lane, order.hand, LaneOrder.REQUEUE if order.requeue else LaneOrder.CANCEL)

    def hasten(self, lane: int, grace: float) -> None:
        """By whoever cancels, one at a time: the order that stands there has this grace."""
        self.reals[self._at(CANCEL_GRACE, lane)] = grace

    def cancelled(self, lane: int) -> CancelOrder | None:
        """The order to end the attempt at the job in this lane; its ``life`` is 0."""
        found = self._columns()
        kind = found.order(lane)
        if kind not in CANCELS:
            return None
        by = LanePage(self.memory, self.page_at(lane)).cancelled_by
        at, grace = found.seconds(CANCEL_AT, lane), found.seconds(CANCEL_GRACE, lane)
        return CancelOrder(0, found.turn(lane), lane, kind is LaneOrder.REQUEUE, grace, at, by)

    def answer(self, lane: int, answered: float) -> None:
        """By the worker: its answer to an order, as ``due`` reads it."""
        self.reals[self._at(CANCEL_OBEYED, lane)] = answered

    def answered(self, lane: int) -> float:
        """What ``answer`` has written."""
        return finite(self.reals[self._at(CANCEL_OBEYED, lane)])

    def carried_out(self, order: CancelOrder) -> None:
        """By the worker, or by the steward once the worker is dead: the job is settled as ordered."""
        self.reals[self._at(CANCEL_DONE, order.number)] = order.at

    def is_carried_out(self, order: CancelOrder) -> bool:
        """Whether it is settled as ordered."""
        return bool(self.reals[self._at(CANCEL_DONE, order.number)] == order.at)

    def runs(self, lane: int, turn: int) -> bool:
        """Whether the worker is in the midst of the attempt at the job that had this turn."""
        return 0 <= lane < self.count and self._columns().runs(lane) and self.wholes[self._at(TURN, lane)] == turn

    def has_ended(self, lane: int, turn: int) -> bool:
        """Whether the job that had this turn is settled or done."""
        found = self._columns()
        return found.turn(lane) != turn or found.stage(lane) != Stage.RUNNING

    def kill_at(self) -> float:
        """The monotonic time at which the worker must be killed for a cancelled job; 0.0 = never."""
        found = self._columns()
        lanes = [lane for lane in found.held() if found.order(lane) in CANCELS and found.runs(lane)]
        return min((found.kill_at(lane) for lane in lanes), default=0.0)

    def orders(self) -> list[tuple[int, LaneOrder]]:
        """By the worker: the orders to the jobs that it holds."""
        found = self._columns()
        orders = [(lane, found.order(lane)) for lane in found.held()]
        return [(lane, order) for lane, order in orders if order]

    def clear(self) -> None:
        """By the master, before the fork: hold nothing. The turns go on, so that no late word hits the next worker.

        So does what was carried out: whoever has cancelled a job may not have looked yet.
        """
        self.memory[self._base : self._base + HEAD * WORD] = bytes(HEAD * WORD)
        first, last = (self._base + self._at(column, 0) * WORD for column in (STAGE, CANCEL_DONE))
        self.memory[first:last] = bytes(last - first)

    @property
    def _size(self) -> int:
        """Bytes of the head and the columns."""
        return (HEAD + COLUMNS * self.count) * WORD

    def place(self, lane: int) -> StepPlace:
        """How far the cursor of this lane's job is."""
        return StepPlace(self.memory, self._base + first_place(self.count) + lane * StepPlace.size)

    def page_at(self, lane: int) -> int:
        """The place of this lane's page in the memory."""
        return self._base + first_page(self.count) + lane * PAGE

    def file(self, lane: int) -> Path:
        """Where this lane's receipt is if it is large."""
        return Path(f"{self._spill}.lane{lane}")

    def _at(self, column: int, lane: int) -> int:
        return HEAD + column * self.count + lane

    def _words(self, code: str) -> Any:
        if isinstance(self.memory, SharedFile):
            return self.memory.words(self._base, code)
        return memoryview(self.memory)[self._base : self._base + self._size].cast(code)  # type: ignore[call-overload]

    def _column(self, column: int) -> array[int]:
        first = self._base + self._at(column, 0) * WORD
        return array("q", self.memory[first : first + self.count * WORD])

    def _columns(self) -> LaneColumns:
        first = self._base + HEAD * WORD
        return LaneColumns(self.memory[first : self._base + self._size], self.count)

    def _read(self, columns: LaneColumns, lane: int) -> HeldLane | None:
        """The job in this lane; ``None`` if that is damaged, or its file is gone."""
        at = self.page_at(lane)
        raw = bytes(self.memory[at : at + PAGE])
        page = LanePage(raw, 0)
        try:
            size, tag, has_row, row, attempts = LEASE.unpack_from(raw, LanePage.size)
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
            attempt=as_count(columns.whole(ATTEMPT, lane)),
            since=columns.seconds(SINCE, lane),
            deadline=columns.seconds(DEADLINE, lane),
            track=columns.seconds(TRACK, lane),
            progress=fraction_of(columns.seconds(PROGRESS, lane)),
            note=page.note,
            lease_end=columns.lease_end(lane),
            counted=bool(columns.whole(COUNTED, lane)),
            told=columns.seconds(TOLD, lane),
            threads=as_count(columns.whole(THREADS, lane)),
            is_suspect=bool(columns.whole(SUSPECT, lane)),
        )

    def _receipt(self, lane: int, raw: bytes, size: int) -> bytes:
        first = PAGE - INLINE
        receipt = raw[first : first + size] if 0 <= size <= INLINE else self.file(lane).read_bytes()
        if len(receipt) != size:
            raise ValueError(f"a receipt of {size} bytes in a lane")
        return receipt
