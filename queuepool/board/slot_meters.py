"""The meters of one slot. They belong to the slot, not to its process: the next worker goes on with the same numbers.

Each attempt that has begun counts exactly once, whichever process is killed between whichever two writes, since every
count is one store of eight bytes and the number of attempts that have *ended* is no field of its own: it is the sum of
all cells, one for each way to end and bucket of run times. So an attempt ends by one store, which says all of it. The
worker raises ``begun`` before an attempt; ``begun - ended`` is 1 until it has been counted, and then 0.

The steward counts the last attempt of a dead worker if that difference is 1. Losses by reason are counted likewise: the
sum of their reasons is raised first, and is then one more than the sum of the cells of lost attempts. Exits too:
``entered`` is raised by each new worker, and exceeds the sum of the exits until it has left.

How an attempt ended is known from the board: the stage of the held job. Only for one that is settled (``SETTLED``) must
the verdict be noted here before that stage is (``ending``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import isfinite

from queuepool.board import meter_layout as layout
from queuepool.board.counts import EXITS, LOSSES, OTHER
from queuepool.board.meter_memory import MeterMemory

#: ``ending`` has room for so many ways, and so many reasons
_WAYS = _LOSSES = 8


class SlotMeters:
    """Written by the slot's worker and, after its death, by the steward."""

    def __init__(self, memory: MeterMemory, index: int) -> None:
        first = memory.shape.area_at(index)
        self._memory = memory
        self._shape = memory.shape
        self._first = first
        view = memoryview(memory)[first : first + self._shape.area]
        self.words, self.reals = view.cast("q"), view.cast("d")

    def enter(self) -> None:
        """By a new worker: no attempt of an earlier one is left to be counted, and this worker has yet to leave."""
        self.words[layout.JOB_ROWS] = max(1, self._used(layout.JOBS))
        self.words[layout.BEGUN] = self._ended()
        self.words[layout.DIED] = 0
        self.words[layout.ENTERED] = self._exits() + 1

    def leave(self, reason: str) -> None:
        """Count the worker's exit, unless it is counted already."""
        if self._exits() < self.words[layout.ENTERED]:
            self.words[layout.FIRST_EXIT + EXITS.index(reason)] += 1

    def job_row(self, queue: str, job: str) -> int:
        """The row of these jobs, made if there is room; else that of the queue's other jobs, or of all others."""
        row = self._row(layout.JOBS, self._shape.own_rows, queue, job)
        return row or self._row(layout.JOBS, self._shape.job_rows, queue, OTHER)

    def count_error(self, job: str, error: str) -> None:
        """Count an exception of this class, raised by this job."""
        row = self._row(layout.ERRORS, layout.ROWS, job, error)
        self.words[layout.FIRST_ERROR + row * layout.ERROR_ROW + 1] += 1

    @property
    def is_open(self) -> bool:
        """Whether an attempt has begun that is not counted yet."""
        return int(self.words[layout.BEGUN]) == self._ended() + 1

    def forget(self) -> None:
        """The attempt begun last never ran: its worker died at once, and it was given back as not begun."""
        self.words[layout.BEGUN] = self._ended()

    def intend(self, way: int, reason: str = "") -> None:
        """Before the job is marked as settled: its attempt ends this way; ``reason`` for those from ``LOST`` on."""
        loss = LOSSES.index(reason) if reason else 0
        self.words[layout.ENDING] = (self.words[layout.BEGUN] * _LOSSES + loss) * _WAYS + way

    @property
    def intended(self) -> tuple[int, int] | None:
        """The way in which the last attempt is to end, and the number of the reason; ``None`` if none is noted."""
        ending, way = divmod(self.words[layout.ENDING], _WAYS)
        begun, loss = divmod(ending, _LOSSES)
        is_valid = begun == self.words[layout.BEGUN] and way < len(layout.WAYS) and loss < len(LOSSES)
        return (way, loss) if is_valid else None

    def end(self, duration: float) -> None:
        """Count the attempt begun last, as intended. ``duration`` in seconds."""
        way, loss = self.intended or (layout.GIVEN_BACK, 0)
        row = self.words[layout.ROW]
        row = row if 0 <= row < self._shape.job_rows else 0
        if way >= layout.LOST and self._sum(layout.losses_of) == self._sum(layout.lost_cells_of):
            self.words[layout.losses_of(row).start + loss] += 1
        self.words[layout.cell_at(row, way, duration)] += 1
        self.reals[layout.FIRST_JOB + row * layout.JOB_ROW + layout.RUN_TOTAL] += duration

    def note_death(self) -> None:
        """The worker has been found dead now, if it had not been before."""
        if not self.reals[layout.DIED]:
            self.reals[layout.DIED] = time.monotonic()

    def run_time(self, since: float, until: float = 0.0) -> float:
        """Seconds from ``since`` (Unix) ``until`` then (monotonic), by default until the worker was found dead."""
        began = since - self.reals[layout.CLOCKS]
        return max(0.0, (until or self.reals[layout.DIED]) - began) if isfinite(began) else 0.0

    def _ended(self) -> int:
        return self._sum(layout.cells_of)

    def _sum(self, part: Callable[[int], slice]) -> int:
        """The sum of this part of each row of jobs."""
        return sum(sum(self.words[part(row)]) for row in range(self._used(layout.JOBS)))

    def _exits(self) -> int:
        return sum(self.words[layout.FIRST_EXIT : layout.FIRST_EXIT + len(EXITS)])

    def _used(self, kind: layout.Rows) -> int:
        """The number of rows in use, with that for the others; 0 before the first."""
        count = self.words[kind.used]
        return count if 0 <= count <= self._shape.most(kind) else 0

    def _row(self, kind: layout.Rows, most: int, *names: str) -> int:
        """The row with these names, made while fewer than ``most`` are in use; else 0."""
        raw = [layout.packed_text(name, size) for name, size in zip(names, kind.texts, strict=True)]
        used = max(1, self._used(kind))
        for row in range(1, used):
            if all(self._memory[place : place + len(text)] == text for place, text in self._texts(kind, row, raw)):
                return row
        return self._made(kind, used, raw) if used < most else 0

    def _made(self, kind: layout.Rows, row: int, raw: Sequence[bytes]) -> int:
        """A new row; its number is written last, so that no reader sees half a name."""
        for place, text in self._texts(kind, row, raw):
            self._memory[place : place + len(text)] = text
        self.reals[kind.first + row * kind.words] = time.monotonic()
        self.words[kind.used] = row + 1
        return row

    def _texts(self, kind: layout.Rows, row: int, raw: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
        """Each text with its place in the memory."""
        place = self._first + (kind.first + row * kind.words) * layout.WORD + kind.numbers.size
        for text, size in zip(raw, kind.texts, strict=True):
            yield place, text
            place += size
