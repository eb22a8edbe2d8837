"""Where each meter lies in a pool's meters, in words of eight bytes: the queues first, then an area for each slot.

An area has a head, then 64 rows of errors, then rows of jobs: 64, and for each queue one more and one for its jobs that
find no row of their own. Row 0 of either is for all that finds no row at all. A row counts once its number is below
that in the head: its names are written before. How many queues there are is known when the pool starts (``Shape``);
what is never used takes no memory.
"""

from __future__ import annotations

from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from queuepool.board.counts import EXITS, LOSSES, OUTCOMES, RUN_BOUNDS, WAIT_BOUNDS

WORD = 8
#: rows of errors, with the one for the others; and of jobs, without those for the queues
ROWS = 64

#: of the head: attempts begun; workers that have entered; how the attempt is about to end; the row of the
#: attempt begun last; Unix time minus monotonic time, as the worker saw them; when it was found dead (monotonic); rows
#: of jobs and of errors in use
BEGUN, ENTERED, ENDING, ROW, CLOCKS, DIED, JOB_ROWS, ERROR_ROWS = range(8)
#: the first of the exits, by reason
FIRST_EXIT = 8
HEAD = 256

#: of a row of a job: when it was first used (monotonic), the totals of run times and waits, all in seconds
FIRST_USED, RUN_TOTAL, WAIT_TOTAL = range(3)
FIRST_LOSS = 3
FIRST_WAIT = FIRST_LOSS + len(LOSSES)
FIRST_WAY = FIRST_WAIT + len(WAIT_BOUNDS) + 1
#: how an attempt may end: by its worker, or (from ``LOST`` on) for a reason in ``LOSSES``; each has its run times
WAYS = (*OUTCOMES, *OUTCOMES[1:])
DONE, RELEASED, FAILED, GIVEN_BACK = range(len(OUTCOMES))
LOST = len(OUTCOMES)
#: what is added to a way for the same outcome of an attempt that was lost
AS_LOST = LOST - RELEASED
RUN_BUCKETS = len(RUN_BOUNDS) + 1
JOB_NUMBERS = FIRST_WAY + len(WAYS) * RUN_BUCKETS
JOB_STRUCT = Struct(f"=3d{JOB_NUMBERS - 3}q")

#: texts: two bytes of length, then UTF-8
QUEUE_TEXT, JOB_TEXT, ERROR_TEXT = 208, 192, 208
JOB_ROW = JOB_NUMBERS + (QUEUE_TEXT + JOB_TEXT) // WORD
#: of a row of an error: when it was first used, how many
ERROR_NUMBERS = 2
ERROR_STRUCT = Struct("=dq")
ERROR_ROW = ERROR_NUMBERS + (JOB_TEXT + ERROR_TEXT) // WORD

FIRST_ERROR = HEAD
FIRST_JOB = FIRST_ERROR + ROWS * ERROR_ROW


class Rows(NamedTuple):
    """One kind of rows: the word of the head with their number, their first word, the words of each, its numbers.

    ``times`` of its numbers are seconds, the first of them when it was first used. ``texts``: the bytes of its names.
    """

    used: int
    first: int
    words: int
    numbers: Struct
    times: int
    texts: tuple[int, int]


JOBS = Rows(JOB_ROWS, FIRST_JOB, JOB_ROW, JOB_STRUCT, 3, (QUEUE_TEXT, JOB_TEXT))
ERRORS = Rows(ERROR_ROWS, FIRST_ERROR, ERROR_ROW, ERROR_STRUCT, 1, (JOB_TEXT, ERROR_TEXT))

#: of the pool
MAGIC = 0x71756575_4D000002
#: ``QUEUES``: those whose names are written; ``ROOM``: those that there is room for
POOL_MAGIC, CAPACITY, PUBLISHED, OUTAGES, FAILED_JOBS, QUEUES, ROOM = range(7)
FIRST_QUEUE = 64
#: more queues than any pool has: a file that speaks of more has been overwritten
MAX_QUEUES = 100_000
#: queues that have rows in a slot's area, which is 3.4 MB of addresses then: the system must grant them for all slots
MOST_ROWS = 1000
#: of a queue: ready, delayed, reserved, quarantined, whether these are lower bounds, oldest, overdue, measured at; the
#: digest of the job that was seen last as the next one, and since when (monotonic); its name
QUEUE_STRUCT, FIRST_SEEN, SEEN_STRUCT = Struct("=5q3d"), 8, Struct("=16sd")
QUEUE_NUMBERS = 11
QUEUE_ROW = QUEUE_NUMBERS + QUEUE_TEXT // WORD

EXITS_STRUCT = Struct(f"={len(EXITS)}q")
_LENGTH = Struct("=H")


class Shape(NamedTuple):
    """Of the meters of a board with ``capacity`` slots, of a pool with so many queues."""

    capacity: int
    queues: int

    @property
    def size(self) -> int:
        """Bytes of it all."""
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
    """The same of attempts that were lost."""
    cells = cells_of(row)
    return slice(cells.start + LOST * RUN_BUCKETS, cells.stop)


def losses_of(row: int) -> slice:
    """The words of this row that count losses, by reason."""
    first = FIRST_JOB + row * JOB_ROW + FIRST_LOSS
    return slice(first, first + len(LOSSES))
