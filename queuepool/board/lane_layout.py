"""The layout of a slot's lanes: a few words, columns of one word for each lane, a page and a place for each lane.

A reader copies the columns of a worker's lanes at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from math import isfinite
from struct import Struct

from queuepool.board.held_jobs import Stage
from queuepool.board.orders import LaneOrder, due
from queuepool.board.record import Record, Text
from queuepool.board.step_place import StepPlace

#: most lanes of a slot: for 1,000 running jobs, and for some that are done and wait to be deleted, or are suspects that
#: wait for their turn
MOST_LANES = 2048
WORD, PAGE = 8, 4096
#: words before the columns
HEAD = 16
#: the lane that has the processor, plus one; since when (monotonic); for how many seconds the loop has been free while
#: a job is told to end; the identity of the loop's thread, and its number in the kernel; the lane whose job the
#: main thread settles, plus one; by the steward: the incarnation on whose death it has ruled; why the worker ends
#: itself (``OwnEnd``); and the step's start plus the time for which the main thread was seen to go on within the step
ON_CPU, ON_CPU_SINCE, FREE, THREAD, NATIVE, SETTLING, RULED, OWN_END, WATCHED = range(9)
#: the columns. Those from ``RENEWED_TURN`` on are written by the steward, or as in ``fields.py`` by whoever cancels a
#: job; the steward also writes ``COUNTED`` after a death. ``Lanes.clear`` leaves the turns as they are
(
    TURN, STAGE, LEASE_END, DEADLINE, SINCE, ATTEMPT, COUNTED, TRACK, PROGRESS, TOLD, THREADS, SUSPECT, PLAIN,
    RENEWED_TURN, RENEWED_END, ORDER, RULING, CANCEL_AT, CANCEL_GRACE, CANCEL_OBEYED, CANCEL_DONE, COLUMNS,
) = range(22)  # fmt: skip
#: the stage of a lane that holds nothing
EMPTY = 0
#: the stages of a lane that holds a job
HELD = frozenset(map(int, (Stage.RESERVED, Stage.READING, Stage.RUNNING, Stage.DONE)))
#: a lease: the size of its receipt, its tag, whether it has a row, and that row
LEASE = Struct("=5q")
#: the base of a word that holds an order: the turn that the order is for, then the order
ORDERS = 8


class LanePage(Record):
    """The texts of one lane; its lease follows them."""

    policy = Text(2000)
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    note = Text(200)
    #: by whoever cancels the job
    cancelled_by = Text(120)


#: the largest receipt on the page; a larger one is a file beside the board
INLINE = PAGE - LanePage.size - LEASE.size


def lanes_size(count: int) -> int:
    """The bytes of a slot's lanes: whole pages, and none without lanes."""
    return first_place(count) + _whole_pages(count * StepPlace.size) if count else 0


def first_page(count: int) -> int:
    return _whole_pages((HEAD + COLUMNS * count) * WORD)


def first_place(count: int) -> int:
    return first_page(count) + count * PAGE


def _whole_pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def lanes_in(size: int) -> int | None:
    """The number of lanes that take this many bytes; ``None`` if no number does."""
    return next((count for count in range(MOST_LANES + 1) if lanes_size(count) == size), None)


def key_of(lane: int, turn: int) -> int:
    """The key that identifies this use of the lane."""
    return turn * MOST_LANES + lane


class LaneColumns:
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
        return self.whole(TURN, lane)

    def stage(self, lane: int) -> int:
        return self.whole(STAGE, lane)

    def held(self) -> Iterator[int]:
        """The lanes that hold a job."""
        return (lane for lane in range(self._count) if self.stage(lane) in HELD)

    def column(self, column: int) -> array[int]:
        return self._wholes[column * self._count : (column + 1) * self._count]

    def times(self, column: int) -> array[float]:
        return self._reals[column * self._count : (column + 1) * self._count]

    def lease_end(self, lane: int) -> float:
        """When its lease ends, as last renewed; 0.0 if its end matters to no process."""
        end = self.seconds(LEASE_END, lane)
        is_renewed = self.whole(RENEWED_TURN, lane) == self.turn(lane)
        return self.seconds(RENEWED_END, lane) or end if end and is_renewed else end

    def runs(self, lane: int) -> bool:
        """Whether its job is at work: not done, and not being settled."""
        return self.stage(lane) == Stage.RUNNING and self.seconds(LEASE_END, lane) != 0.0

    def kill_at(self, lane: int) -> float:
        times = (self.seconds(column, lane) for column in (CANCEL_AT, CANCEL_GRACE, CANCEL_OBEYED))
        return due(*times, is_plain=bool(self.whole(PLAIN, lane)))

    def order(self, lane: int) -> LaneOrder | None:
        turn, order = divmod(self.whole(ORDER, lane), ORDERS)
        return LaneOrder(order) if turn == self.turn(lane) and order in list(LaneOrder) else None
