"""The hand: the receipts that a worker holds, on the board, so that whoever buries it can settle them.

Each slot has two, of which one is the hand of this turn (``Slot.hand``): the next one is written down before it counts.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from queuepool.pace import MOST
from queuepool.stores.base import Lease, Row

#: bytes on the board for each hand; receipts beyond it lie in files beside the board
AREA = 128 * 1024
#: jobs in a hand at most, and one to spare: as many as are reserved at once, and as many that are done
_MOST = 2 * MOST + 1
_COUNT = struct.Struct("=q")
_ENTRY = struct.Struct("=BBHI?qqq")
_NO_ROW = Row(0, 0, 0)


class Stage(IntEnum):
    """How far a held job has come."""

    RESERVED = 1
    RUNNING = 2
    DONE = 3
    #: by the steward, after its worker's death
    SETTLED = 4


@dataclass(frozen=True, slots=True)
class Held:
    """One job in a hand."""

    lease: Lease
    stage: Stage


class Hand:
    """One area; its slot's worker writes, and after its death the steward."""

    def __init__(self, memory: Any, base: int, spill: Path) -> None:
        self._memory = memory
        self._base = base
        self._spill = spill
        self._places: list[int] = []

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """Write down what is done and what was just reserved, in this order, and forget what was held before."""
        self._set_count(0)
        self._places = []
        place, parts = self._base + _COUNT.size, []
        for number, lease in enumerate((*done, *leases)):
            self._places.append(place)
            parts.append(self._entry(place, number, lease, Stage.DONE if number < len(done) else Stage.RESERVED))
            place += len(parts[-1])
        self._memory[self._base + _COUNT.size : place] = b"".join(parts)
        # Last, so that a reader never sees half a receipt.
        self._set_count(len(self._places))

    def mark(self, number: int, stage: Stage) -> None:
        """The ``number``-th job, from 0, has come this far: one byte."""
        self._memory[self._places[number]] = stage

    def drop(self) -> None:
        """Nothing is held."""
        self._set_count(0)

    @property
    def is_empty(self) -> bool:
        return _COUNT.unpack_from(self._memory, self._base) == (0,)

    def held(self) -> list[Held]:
        """Read by anybody."""
        (count,) = _COUNT.unpack_from(self._memory, self._base)
        self._places = []
        found, place = [], self._base + _COUNT.size
        for number in range(count):
            self._places.append(place)
            entry, place = self._read(place, number)
            found.append(entry)
        return found

    def _set_count(self, count: int) -> None:
        _COUNT.pack_into(self._memory, self._base, count)

    def _entry(self, place: int, number: int, lease: Lease, stage: Stage) -> bytes:
        queue, receipt, row = lease.queue.encode(), lease.receipt, lease.row
        # Room is left for the queues and headers of the entries still to come.
        spilled = place + len(queue) + len(receipt) > self._base + AREA - _MOST * (256 + _ENTRY.size)
        head = _ENTRY.pack(stage, spilled, len(queue), len(receipt), row is not None, *(row or _NO_ROW))
        if spilled:
            self._file(number).write_bytes(receipt)
            return head + queue
        return head + queue + receipt

    def _read(self, place: int, number: int) -> tuple[Held, int]:
        stage, spilled, queue_size, size, in_table, *numbers = _ENTRY.unpack_from(self._memory, place)
        middle = place + _ENTRY.size + queue_size
        queue = bytes(self._memory[place + _ENTRY.size : middle]).decode()
        last = middle if spilled else middle + size
        receipt = self._file(number).read_bytes() if spilled else bytes(self._memory[middle:last])
        return Held(Lease(queue, receipt, Row(*numbers) if in_table else None), Stage(stage)), last

    def _file(self, number: int) -> Path:
        return self._spill.with_name(f"{self._spill.name}.{number}")
