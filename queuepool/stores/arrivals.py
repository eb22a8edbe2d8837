"""The contract of arrivals: jobs that come from another store, each once, whatever is sent again or comes late."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from queuepool.stores.contract import NewJob

#: seconds for which it is known what became of a job
KNOWN_FOR = 365 * 86400.0
#: the same once nobody asks for it any more: far longer than any call may be under way
FORGOTTEN_AFTER = 3600.0


class Arrival(Enum):
    """What has become of a job that was to come."""

    #: it has been pushed, now or before
    CAME = "came"
    #: it was refused before, and is never pushed
    REFUSED = "refused"


class Arrivals(Protocol):
    """Jobs by their numbers, which are random: what became of each is written in the step that decides it.

    Raises ``StoreDown`` and ``StoreError``. All verbs may be repeated.
    """

    def place(self) -> str:
        """An id of the place where jobs arrive: random, given by the first call. Raises ``StoreDenied`` without tables.

        Another store has another one, and so has this one if it was emptied: nothing is known there of what came here.
        """

    def admit(self, queue: str, job: NewJob, due: float | None, number: str, until: float) -> Arrival:
        """Push the job, unless it has come before, or was refused; ``due`` in Unix seconds.

        From the Unix second ``until`` on, by the store's clock, nothing is done, and ``StoreDown`` is raised.
        """

    def refuse(self, number: str) -> Arrival:
        """Never push this job, unless it has come; also if the call that pushes it is still under way."""

    def forget(self, numbers: Sequence[str]) -> None:
        """Keep what became of these for ``FORGOTTEN_AFTER`` only."""

    def sweep(self) -> None:
        """Remove what need not be known any more, where the store does not do so by itself."""
