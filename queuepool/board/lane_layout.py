"""Where each fact of a slot's lanes stands: a few words, columns of one word for each lane, and a page for each."""

from __future__ import annotations

from struct import Struct

from queuepool.board.held_jobs import Stage
from queuepool.board.record import Record, Text

#: most lanes of a slot: of 1,000 jobs that run, and of some that are done and wait to be deleted, or are suspects and
#: wait for their turn
MOST_LANES = 2048
WORD, PAGE = 8, 4096
#: words before the columns
HEAD = 16
#: which lane has the processor, plus one; since when (monotonic); for how many seconds the loop has been free, counted
#: while a job is told to end; the identity of the loop's thread, and its number in the kernel; which lane's job the
#: main thread settles, plus one; by the steward: the incarnation on whose death it has ruled; why the worker ends
#: itself (``OwnEnd``); and since when, plus for how long the main thread was seen to go on within that step
ON_CPU, ON_CPU_SINCE, FREE, THREAD, NATIVE, SETTLING, RULED, OWN_END, WATCHED = range(9)
#: the columns; from ``RENEWED_TURN`` on they are the steward's, which also notes what it has counted, and of whoever
#: cancels a job (as in ``slot.py``). ``Lanes.clear`` leaves the turns
(
    TURN, STAGE, LEASE_END, DEADLINE, SINCE, ATTEMPT, COUNTED, TRACK, PROGRESS, TOLD, THREADS, SUSPECT,
    RENEWED_TURN, RENEWED_END, ORDER, RULING, CANCEL_AT, CANCEL_GRACE, CANCEL_OBEYED, CANCEL_DONE, COLUMNS,
) = range(21)  # fmt: skip
#: the stage of a lane that holds nothing
EMPTY = 0
#: the stages of a lane that holds a job
HELD = frozenset(map(int, (Stage.RESERVED, Stage.READING, Stage.RUNNING, Stage.DONE)))
#: of a lease: the size of its receipt, its tag, whether it has a row, and that row
LEASE = Struct("=5q")
#: a word with an order is a number in this base, of the turn that it is for and the order
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
    return (first_page(count) + count * PAGE) if count else 0


def first_page(count: int) -> int:
    return -(-(HEAD + COLUMNS * count) * WORD // PAGE) * PAGE


def lanes_in(size: int) -> int | None:
    """How many lanes have this size; ``None`` if no number has."""
    return next((count for count in range(MOST_LANES + 1) if lanes_size(count) == size), None)


def key_of(lane: int, turn: int) -> int:
    """What tells this use of the lane from all others."""
    return turn * MOST_LANES + lane
