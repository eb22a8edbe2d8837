"""The held jobs: a worker's leases, on the board, so that the steward can settle them when the worker is dead.

The leases that a worker holds at a time are its hand (``Slot.hand``). Each slot has two areas: one holds the present
hand, and the next hand is written to the other before it counts. ``Running`` has the facts of a running job, wherever
on the board they are.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from queuepool.config.values import MAX_AHEAD
from queuepool.payload.lease import Lease, LeaseRow

#: bytes on the board for each area; receipts that do not fit there go to files beside the board
AREA = 128 * 1024
#: most jobs in a hand: those reserved at once, as many that are done, and one to spare
_MAX_JOBS = 2 * MAX_AHEAD + 1
#: the layout: the number of jobs; the stage of each; the sizes of each one's queue, receipt and proof; all of these
_COUNT = struct.Struct("=q")
_STAGES = _COUNT.size
_SIZES = _STAGES + _MAX_JOBS
_PARTS, _SIZE = 3, 4
#: bytes for all parts, without their sizes; the largest receipt that fits into every area
_ROOM = AREA - _SIZES - _MAX_JOBS * _PARTS * _SIZE
_INLINE_BYTES = 512
#: stands for the size of a receipt that is in a file
_IN_A_FILE = 0xFFFFFFFF
#: stands for a progress of 0 on the board, since 0.0 is unknown there
SAYS_0 = 2.0


class Stage(IntEnum):
    """How far a held job has come."""

    RESERVED = 1
    RUNNING = 2
    DONE = 3
    #: settled or given back, by its worker or after its death by the steward: another worker may hold it now
    SETTLED = 4
    #: its payload is being read, which may crash the worker: the job has not begun
    READING = 5

    @classmethod
    def _missing_(cls, value: object) -> Stage:
        return cls.SETTLED  # overwritten: no process may act on it, and its lease expires


#: the stages at which a job's own code may run
AT_WORK = (Stage.READING, Stage.RUNNING)
#: the stages of jobs whose attempts have begun
BEGUN = (Stage.RUNNING, Stage.DONE)


@dataclass(frozen=True, slots=True)
class HeldJob:
    """One held job; ``number``: its place among those of its worker."""

    number: int
    lease: Lease
    stage: Stage


def still_held(jobs: Sequence[HeldJob]) -> list[Lease]:
    """The leases of those that are not settled: a settled job may have been reserved again, with the same bytes."""
    return [one.lease for one in jobs if one.stage != Stage.SETTLED]


class HeldJobs:
    """One area, written by the slot's worker and, after its death, by the steward."""

    def __init__(self, memory: Any, base: int, spill: str) -> None:
        self._memory = memory
        self._base = base
        self._stages = base + _STAGES
        self._spill = spill

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """Hold the done jobs and those just reserved, in this order, in place of the former. Raises ``OSError``."""
        self.drop()
        # In columns, each made by one call: the loop writes a hand for every few jobs.
        parts = [
            part
            for queue, receipt, tag, row, _, _, _, _ in (*done, *leases)
            for part in (queue.encode(), receipt, array("q", (tag, *row)).tobytes() if row else _proof(tag))
        ]
        sizes = array("I", map(len, parts))
        if sum(sizes) > _ROOM:
            self._spill_over(parts, sizes)
        self._write(self._stages, bytes([Stage.DONE]) * len(done) + bytes([Stage.RESERVED]) * len(leases))
        self._write(self._base + _SIZES, sizes.tobytes() + b"".join(parts))
        # Last, so that a reader never sees half a receipt.
        self._set_count(len(done) + len(leases))

    def mark(self, number: int, stage: int) -> None:
        """Set the stage of the ``number``-th job, counted from 0: writes one byte."""
        self._memory[self._stages + number] = stage

    def stage(self, number: int) -> Stage:
        """The stage of the job with this number."""
        place = self._stages + number
        return Stage(*self._memory[place : place + 1]) if 0 <= number < _MAX_JOBS else Stage.SETTLED

    def drop(self) -> None:
        """Hold nothing."""
        self._set_count(0)

    @property
    def is_empty(self) -> bool:
        """Whether no job is held."""
        return self._count() == 0

    def held(self) -> list[HeldJob]:
        """The held jobs; any process may read them.

        While the worker is alive and may be writing, the result can be wrong. Raises ``ValueError`` and ``OSError``.
        """
        count = self._count()
        if not 0 <= count <= _MAX_JOBS:
            raise ValueError(f"{count} jobs in a hand")
        stages, parts = self._memory[self._stages : self._stages + count], iter(self._parts(count * _PARTS))
        return [
            HeldJob(number, Lease(queue.decode(), receipt, *_proved(proof)), Stage(stage))
            for number, (stage, queue, receipt, proof) in enumerate(zip(stages, parts, parts, parts, strict=True))
        ]

    def _parts(self, count: int) -> list[bytes]:
        """The parts of all jobs, in order."""
        first = self._base + _SIZES
        place, parts = first + count * _SIZE, []
        for index, size in enumerate(array("I", self._memory[first:place])):
            if size == _IN_A_FILE:
                parts.append(self._file(index // _PARTS).read_bytes())
            elif place + size > self._base + AREA:
                raise ValueError(f"{size} bytes in a hand")
            else:
                parts.append(self._memory[place : place + size])
                place += size
        return parts

    def _spill_over(self, parts: list[bytes], sizes: array[int]) -> None:
        for index in range(1, len(parts), _PARTS):
            if sizes[index] > _INLINE_BYTES:
                self._file(index // _PARTS).write_bytes(parts[index])
                parts[index], sizes[index] = b"", _IN_A_FILE

    def _count(self) -> int:
        (count,) = _COUNT.unpack(self._memory[self._base : self._stages])
        return int(count)

    def _set_count(self, count: int) -> None:
        self._write(self._base, _COUNT.pack(count))

    def _write(self, place: int, raw: bytes) -> None:
        self._memory[place : place + len(raw)] = raw

    def _file(self, number: int) -> Path:
        return Path(f"{self._spill}.{number}")


@lru_cache(maxsize=8)
def _proof(tag: int) -> bytes:
    """Cached: all jobs of a hand, and most of a worker's hands, have the same tag."""
    return array("q", [tag]).tobytes()


def _proved(proof: bytes) -> tuple[int, LeaseRow | None]:
    """The tag, and the row if there is one. Raises ``ValueError``."""
    tag, *row = array("q", proof)
    if not row:
        return tag, None
    number, attempts = row
    return tag, LeaseRow(number, attempts)


class Running(NamedTuple):
    """An attempt that a worker has begun.

    A living worker may be writing it, and any job may have overwritten it: whoever acts on it compares ``id`` with the
    payload of the held job.
    """

    #: its number among the held jobs
    number: int
    job: str
    id: str
    queue: str
    attempt: int
    #: Unix seconds
    since: float
    #: monotonic; 0.0 = none
    deadline: float
    #: seconds for which its state is kept after its end; 0.0 = it is not tracked
    track: float
    #: its progress as it reports it, from 0 to 1; ``None`` if it reports none
    progress: float | None
    note: str
    #: JSON of its ``Policy``; empty if its worker has begun no job
    policy: str


#: for a slot in which no job has begun
NOTHING = Running(-1, "", "", "", 0, 0.0, 0.0, 0.0, None, "", "")


def fraction_of(progress: float) -> float | None:
    """A job's progress, from its field on the board; ``None`` if it reports none."""
    return 0.0 if progress == SAYS_0 else progress if 0.0 < progress <= 1.0 else None
