"""The contract of kept attempts: a record of each one that has ended lately, by queue.

The verb of ``stores.contract`` that ends a lease writes the lease's ``AttemptRecord`` in the same step, with the job's
payload if that is short. It does so for a lease that was lost, too: the attempt was made, although nothing came of it.
A verb never fails for its record: a full Redis takes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from queuepool.payload.lease import AttemptRecord

#: most bytes of a payload that is kept with its attempt
MOST_PAYLOAD = 4096
#: most records of one queue, and most of their bytes
MOST_RECORDS, MOST_BYTES = 100_000, 64 * 1024 * 1024
#: seconds after which one trimming ends, though more is left to remove: who trims has to settle as well
TRIM_TAKES = 0.1


class KeptAttempt(NamedTuple):
    """One attempt that has ended, as it was recorded."""

    queue: str
    #: facts as JSON
    text: bytes
    #: empty if it was too long to be kept
    payload: bytes
    #: whether its lease was lost: another worker could have the job when it ended
    is_lost: bool = False


class Attempts(Protocol):
    """The kept attempts in one store. Raises ``StoreDown`` and ``StoreError``."""

    def of_job(self, queue: str, job_id: str) -> Iterator[list[KeptAttempt]]:
        """Those at this job of the queue, in pages, about the latest first; others may be among them."""

    def pages(self, queue: str) -> Iterator[list[KeptAttempt]]:
        """All of the queue, in pages, about the latest first, while others are added and removed.

        A page may be empty, and its order is not said. Some may be met twice.
        """

    def note(self, queue: str, records: Sequence[AttemptRecord]) -> None:
        """Add the records of attempts that no lease can end any more, as of leases that were lost."""

    def trim(self, queue: str, most: int, most_bytes: int) -> int:
        """Remove those that were kept for as long as their pool has said, and the first of too many, but not for long.

        Returns how many it has removed: if any, more may be left. Those of a queue that is not trimmed again end by
        themselves, or with what else has expired.
        """
