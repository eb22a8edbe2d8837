"""A worker's lease on one job, and the tallies of the job's earlier attempts.

A lease's tag is its fencing token: a store carries out nothing for a lease that was given to another since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LeaseRow(NamedTuple):
    """A leased job's place in a table: the row's id, and which attempt this is."""

    id: int
    attempts: int


class Lease(NamedTuple):
    """A temporary right to a job: its queue, its bytes, and the tag of the worker that reserved it.

    Its proof is bytes and tag in Redis, row and tag in a table. Tags begin at 1; 0 is a reservation by another program.
    """

    queue: str
    receipt: bytes
    tag: int = 0
    row: LeaseRow | None = None

    @property
    def attempts(self) -> int | None:
        """Which attempt this is, if a row counts them; ``None`` if the payload does."""
        return self.row.attempts if self.row else None


@dataclass(frozen=True, slots=True)
class Tallies:
    """How many exceptions the job's earlier attempts raised, and how many of them died with their worker.

    ``suspects``: how many ended with a worker which they, or another job beside them, may have killed.
    """

    exceptions: int = 0
    crashes: int = 0
    suspects: int = 0
