"""The records of attempts that no worker writes, and the bounds of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from queuepool.board.overview import JobRow, processes_in
from queuepool.board.record import DAMAGED
from queuepool.errors import StoreDenied, StoreDown, StoreError, StoreFull
from queuepool.payload.lease import AttemptRecord
from queuepool.settlement.attempts import fields_of
from queuepool.stores.attempts import MOST_BYTES, MOST_RECORDS, Attempts

#: seconds between rounds, while there is something to remove, and otherwise
_BUSY, TRIM_AGAIN = 2.0, 30.0


class TrimAttempts:
    """Removes what was kept for long enough, and the first records of a queue that has too many."""

    def __init__(self, attempts: Attempts, queues: Sequence[str]) -> None:
        self._attempts = attempts
        self._queues = queues

    def run(self, now: float) -> float:
        """As of every chore."""
        return _BUSY if sum(map(self._trimmed, self._queues)) else TRIM_AGAIN

    def _trimmed(self, queue: str) -> int:
        with _unless_away():
            return self._attempts.trim(queue, MOST_RECORDS, MOST_BYTES)
        return 0


class RecordLost:
    """Records what a lost pool ran, by its last notice."""

    def __init__(self, attempts: Attempts, keep: float) -> None:
        self._attempts = attempts
        self._keep = keep

    def __call__(self, notice: Mapping[str, Any]) -> None:
        """Raises ``StoreDown`` if the store is away."""
        lost = dict[str, list[AttemptRecord]]()
        with suppress(*DAMAGED):
            place = {"host": str(notice["host"]), "pool": str(notice["pool"])}
            for process in processes_in(notice):
                about = {**place, "pid": process.pid, "worker": process.number, "generation": process.generation}
                for job in (job for job in process.jobs if job.queue):
                    record = _lost_with_its_pool(job, float(notice["at"]), self._keep, **about)
                    lost.setdefault(job.queue, []).append(record)
        for queue, records in lost.items():
            with _unless_away():
                self._attempts.note(queue, records)


@contextmanager
def _unless_away() -> Iterator[None]:
    """Leave out what the store refuses for lack of a right, of room, or of a key of this type: nothing waits for it."""
    try:
        yield
    except (StoreDenied, StoreFull):
        return
    except StoreDown:
        raise
    except StoreError:
        return


def _lost_with_its_pool(job: JobRow, heard: float, keep: float, **place: object) -> AttemptRecord:
    """The record of an attempt at ``job`` that a pool ran when it was last heard of; nobody knows when that ended."""
    began = datetime.fromisoformat(job.since).timestamp() if job.since else None
    about = {"ended": heard, "began": began, "id": job.id, "name": job.name, "attempt": job.attempt}
    error = "its pool was last heard of then, and has not ended in order"
    text = fields_of({**about, "outcome": "lost", "error": error}).removeprefix(",")
    return AttemptRecord(job.id, text, fields_of(place), keep)
