"""A worker's lease on one job, and the tallies of the job's earlier attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LeaseRow(NamedTuple):
    """A leased job's place in a table: the row's id, and which attempt this is."""

    id: int
    attempts: int


class Lease(NamedTuple):
    """A temporary right to a job: its queue, its bytes, and the tag of the worker that reserved it.

    Bytes and tag prove it in Redis, row and tag in a table. Tags begin at 1; 0 is a reservation by another program.
    """

    queue: str
    receipt: bytes
    tag: int = 0
    row: LeaseRow | None = None

    @property
    def attempts(self) -> int | None:
        """Which attempt this is, if the row says; ``None`` if the bytes do."""
        return self.row.attempts if self.row else None


@dataclass(frozen=True, slots=True)
class Tallies:
    """How many exceptions the job's earlier attempts raised, and how many of them died with their worker."""

    exceptions: int = 0
    crashes: int = 0
