"""The contract of Laravel's batches, as its table ``job_batches`` has them."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Batch(NamedTuple):
    """A batch as it was when read; only Laravel changes it."""

    id: str
    name: str
    #: jobs: all, unfinished ones, and failures, which later retries do not reduce
    total: int
    pending: int
    failed: int
    cancelled: bool


class Batches(Protocol):
    """The batches in one database."""

    def find(self, batch_id: str) -> Batch | None:
        """The batch; ``None`` if there is no such row."""
