"""What a queue holds, for the steward, which looks every few seconds: cheap, however long the queue is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Measured:
    """One queue; times in seconds by the store's clock."""

    ready: int
    delayed: int
    reserved: int
    quarantined: int
    #: for how long the next job has been ready, 0.0 = none is; ``None``: only its payload may say it
    oldest: float | None
    #: when it was measured, in Unix seconds
    now: float
    #: the next job, where its age is ``None``
    payload: bytes | None = None
    #: for how long the first delayed job has been due and not made ready
    overdue: float = 0.0
    #: whether there are more jobs than were counted
    is_at_least: bool = False


class Measures(Protocol):
    """Measures the queues of one store. Raises ``StoreDown`` and ``StoreError``."""

    def of(self, queue: str) -> Measured:
        """About how many jobs the queue holds, and for how long the next one has been ready."""
