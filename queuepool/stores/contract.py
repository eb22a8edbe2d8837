"""The contract of a store, in words. Times are seconds; the store's own clock decides what is due.

Every verb may raise ``StoreDown`` (worth trying again) or ``StoreError`` (it is not). After ``StoreDown`` it is
unknown whether the verb was carried out, or will be: the network may deliver it after its caller gave up.
``delete``, ``release``, ``give_back``, ``fail``, ``quarantine`` and ``renew`` may be called again: they are conditional
on the lease, which no later reservation of the same job equals. ``push`` and ``reserve`` may not; after an unanswered
call of any verb a worker draws a new tag, and no reserve is carried out under the old one (``join``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from queuepool.payload.lease import Lease, Tallies

#: seconds that a call may be held up before it is carried out
UNDER_WAY = 60.0
#: seconds after which a pool that published nothing is gone
NOTICE_LASTS = 30.0


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one ``reserve`` brought; ``next_due`` is seconds from now, ``None`` when nothing waits or jobs came."""

    leases: list[Lease] = field(default_factory=list)
    #: done jobs that were not ours any more
    refused: list[Lease] = field(default_factory=list)
    #: (queue, reason) for each payload that went to the quarantine
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    #: (queue, the server's words) for each queue that could not be served
    problems: list[tuple[str, str]] = field(default_factory=list)
    next_due: float | None = None


@dataclass(frozen=True, slots=True)
class Staged:
    """How many jobs became ready, seconds to the next one (``None``: none waits), the server's clock."""

    moved: int
    next_due: float | None
    now: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a queue holds; ``oldest`` is the first ready payload."""

    ready: int
    delayed: int
    reserved: int
    quarantined: int
    oldest: bytes | None

    @property
    def total(self) -> int:
        """Laravel's size: all that is still to be done."""
        return self.ready + self.delayed + self.reserved


@dataclass(frozen=True, slots=True)
class Control:
    """The control keys: the restart stamp (``None``: no such key), paused queues, maintenance."""

    restart: str | None = None
    paused: frozenset[str] = frozenset()
    down: bool = False


class QueueStore(Protocol):
    """Jobs in their queues."""

    @property
    def polls(self) -> bool:
        """Whether jobs may come of which ``wait`` is not told."""

    def reach(self) -> None:
        """Connect, if that has to be done; raises ``StoreDown`` before anything was asked."""

    @property
    def unanswered(self) -> int:
        """How many calls of this process went unanswered so far: any of them may still be carried out."""

    @property
    def commits_late(self) -> float:
        """Seconds for which a transaction of a retired tag may still be committed; 0.0 where none can be."""

    def join(self, old: int = 0) -> int:
        """A tag for this worker that no other living worker has; what it had before, ``old``, is retired."""

    def retire(self, tag: int) -> None:
        """Nothing is reserved under this tag from now on, whatever is still on its way."""

    def push(self, queue: str, payloads: Sequence[bytes], delay: float = 0.0) -> None:
        """Add jobs; without a ``delay`` in their order, with one all of them ready after it."""

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        """Settle ``done``, stage what is due, take up to ``limit`` jobs in strict queue priority; never blocks.

        Raises ``TagRetired``, with nothing done, when the tag is not registered any more.
        """

    @property
    def reserve_ahead(self) -> Callable[[Sequence[str], int, int, Sequence[Lease]], Callable[[], Reservation]] | None:
        """As ``reserve``, but only sent: call what it gives for the answer. ``None`` where a store cannot.

        Other verbs may be called meanwhile.
        """

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        """Block until a job may be there or the time is over; a signal handler may raise out of it."""

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> bool:
        """Block until a job may be due earlier than the last ``stage`` said (``True``), or the time is over."""

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        """End jobs that are done; ``False`` for each that was not ours any more."""

    def release(self, lease: Lease, delay: float, job_id: str, tally: str = "") -> bool:
        """Try again after ``delay``, and raise one of the job's tallies (``exceptions``, ``crashes``)."""

    def give_back(self, leases: Sequence[Lease]) -> list[bool]:
        """Back to the head of their queues, in their order, attempts as before they were reserved."""

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """Give back what ``tag`` reserved without hearing of it, in the last ``since`` seconds when it is carried out.

        They are counted when this is carried out, and it may be held up on its way (``UNDER_WAY``). The tag must be
        retired already.
        """

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        """Let them last ``retry_after`` from now; ``False`` for each that had ended."""

    def stage(self, queues: Sequence[str]) -> Staged:
        """Make ready what is due, at most 1,000 jobs, and wake as many workers as jobs."""

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any]) -> bool:
        """Record in the failed store and end the job, both or neither.

        Where the failed store is another server's, the record waits here to be taken there (``set_aside.Outbox``).
        """

    def quarantine(self, lease: Lease, reason: str) -> bool:
        """Set aside what the worker found to be no job."""

    def tallies(self, job_id: str) -> Tallies:
        """What earlier attempts of the job have raised and killed."""

    def now(self) -> float:
        """The store's clock, Unix seconds, without a round trip where it was heard of lately."""

    def sizes(self, queue: str) -> Sizes:
        """What the queue holds."""

    def queues(self) -> list[str]:
        """The names of all queues that hold something, in order; looks through the whole store."""

    def clear(self, queue: str) -> int:
        """Drop its jobs, ready, delayed and reserved; what could not be a job stays. Gives how many there were."""
