"""A worker's right to one job, and what is counted of the job's earlier attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Row(NamedTuple):
    """Where a leased job is in a table: the row's id, and which attempt this is."""

    id: int
    attempts: int


class Lease(NamedTuple):
    """Our temporary right to a job: its queue, its bytes, and the tag of the worker that reserved it.

    In Redis bytes and tag prove it, in a table row and tag. Tags begin at 1; 0 stands for somebody else's reservation.
    """

    queue: str
    receipt: bytes
    tag: int = 0
    row: Row | None = None

    @property
    def attempts(self) -> int | None:
        """Which attempt this is, where the bytes do not say."""
        return self.row.attempts if self.row else None


@dataclass(frozen=True, slots=True)
class Tallies:
    """Exceptions raised and workers killed in the job's earlier attempts."""

    exceptions: int = 0
    crashes: int = 0
