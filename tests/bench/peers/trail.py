"""What the jobs have noted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tests.bench.peers.jobs import RECORD
from tests.bench.records import whole

#: the part at each end that is left out of a rate: processes that start, and those that find nothing any more
_EDGE = 0.15


class Note(NamedTuple):
    """One start of one job; ``began`` in monotonic seconds."""

    n: int
    began: float
    pid: int


class Trail:
    """One file; jobs append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def __len__(self) -> int:
        return self.path.stat().st_size // RECORD.size

    def notes(self) -> list[Note]:
        return [Note(*fields) for fields in whole(RECORD, self.path.read_bytes())]

    def starts(self) -> dict[int, float]:
        """When each job began for the first time."""
        return {note.n: note.began for note in reversed(self.notes())}

    def forget(self) -> None:
        os.truncate(self.path, 0)  # workers have it open, to append

    def has_all(self, jobs: int) -> bool:
        return len(self) >= jobs and len({note.n for note in self.notes()}) == jobs


def rate_of(notes: list[Note]) -> float:
    """Jobs a second, the edges left out."""
    times = sorted(note.began for note in notes)
    first, last = int(_EDGE * len(times)), int((1 - _EDGE) * len(times)) - 1
    return (last - first) / (times[last] - times[first])
