"""The contract of a store of jobs; ``records`` and ``values`` have those of what is set aside, and of named values.

Times are seconds; the store's own clock decides what is due.

Every verb may raise ``StoreDown`` (worth a retry) or ``StoreError`` (not worth one). After ``StoreDown`` it is unknown
whether the verb was carried out or will be: the network may deliver it after its caller gave up.
``delete``, ``finish``, ``release``, ``give_back``, ``fail``, ``quarantine`` and ``renew`` may be repeated: they are
conditional on the lease, which no later reservation of the same job equals. ``push`` and ``reserve`` may not. After an
unanswered call of any verb, and when another server answers at the same address, a worker takes a new tag, and no
reserve is carried out under the old one (``join``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from queuepool.payload.ending import NOTHING, Ending, Lock, StateRecord, Unlock
from queuepool.payload.lease import Lease, Tallies
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf

#: where a queue keeps a job: ready, for later, or with a worker
Shelf = Literal["ready", "delayed", "reserved"]
#: seconds that a call may be delayed before it is carried out
UNDER_WAY = 60.0
#: seconds after which a pool that has published nothing counts as gone
NOTICE_LASTS = 30.0
#: seconds for which its last notice is kept nevertheless, so that its loss can be noticed
NOTICE_KEPT = 3600.0
#: Unix seconds from here on are damage
NO_SECOND = 2**40


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of ``reserve``; ``next_due`` is in seconds from now, ``None`` when nothing waits or it has jobs."""

    leases: list[Lease] = field(default_factory=list)
    #: done jobs whose leases were lost
    refused: list[Lease] = field(default_factory=list)
    #: (queue, reason) for each payload that went to the quarantine
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    #: (queue, the server's words) for each queue that could not be served
    problems: list[tuple[str, str]] = field(default_factory=list)
    next_due: float | None = None


@dataclass(frozen=True, slots=True)
class Staged:
    """How many jobs became ready, seconds to the next one (``None``: none waits), and the server's clock."""

    moved: int
    next_due: float | None
    now: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many payloads a queue holds, by state; ``oldest`` is the first ready payload."""

    ready: int
    delayed: int
    reserved: int
    quarantined: int
    oldest: bytes | None

    @property
    def total(self) -> int:
        """Laravel's size: every job that is still to be done."""
        return self.ready + self.delayed + self.reserved


@dataclass(frozen=True, slots=True)
class Measured:
    """What one queue holds; times in seconds by the store's clock."""

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


@dataclass(frozen=True, slots=True)
class Control:
    """The values of the control keys: the restart stamp (``None``: no such key), what is paused, and maintenance."""

    restart: str | None = None
    paused: frozenset[str] = frozenset()
    down: bool = False
    #: those that are paused
    schedules: frozenset[str] = frozenset()
    #: of the paused queues that say it: when that was, in Unix seconds, and by whom
    pauses: Mapping[str, tuple[float, str]] = field(default_factory=dict)


class NewJob(NamedTuple):
    """A job to push: its payload, and its first state if it is tracked."""

    payload: bytes
    state: StateRecord | None = None


class PushStore(Protocol):
    """Where jobs are pushed to: a store, a transaction of the application's, or what waits for its commit."""

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """Add jobs in their order, each with its state; with a ``delay``, all become ready after it.

        All or nothing of each thousand; their states are kept equally long. With a ``lock``, for one job: ``False``,
        with nothing written, if another job holds it.
        """


class QueueStore(PushStore, Protocol):
    """A store of queues and their jobs."""

    #: how ``finish``, ``fail`` and ``unlock`` find unique locks, and whether the last one found any
    locks_of: LocksOf

    @property
    def polls(self) -> bool:
        """Whether jobs may arrive that do not end a ``wait``."""

    def reach(self) -> None:
        """Connect, unless connected; raises ``StoreDown`` before any command is sent."""

    @property
    def unanswered(self) -> int:
        """How many calls of this process have not been answered so far, as each may still be carried out.

        In Redis each change of the server counts as well, as another one may not know our tag. It is noticed by the
        ``reach`` or the call that connects again.
        """

    @property
    def commits_late(self) -> float:
        """Seconds during which a transaction of a retired tag may still be committed; 0.0 where none can."""

    def join(self, old: int = 0) -> int:
        """A tag for this worker that no other living worker has; its former one, ``old``, is retired."""

    def retire(self, tag: int) -> None:
        """From now on reserve nothing under this tag, even for calls that are still on their way."""

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        """Release unique locks of a job that goes on; one that another owner holds stays."""

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        """Settle ``done``, stage what is due, take up to ``limit`` jobs in strict queue priority; never blocks.

        Raises ``TagRetired``, having done nothing, when the tag is no longer registered.
        """

    @property
    def reserve_ahead(self) -> Callable[[Sequence[str], int, int, Sequence[Lease]], Callable[[], Reservation]] | None:
        """As ``reserve``, but only sends it: call the result to read the reply. ``None`` where a store cannot.

        Other verbs may be called in between.
        """

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        """Block until a job may be ready or the time is over; a signal handler may raise out of it."""

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> bool:
        """Block until a job may be due earlier than the last ``stage`` returned (``True``), or the time is over."""

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        """Remove jobs that are done; ``False`` for each whose lease was lost."""

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        """Retry the job after ``delay``, raise one of its tallies (``exceptions``, ``crashes``), write its state."""

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        """Return jobs to the head of their queues, in their order, with the attempts that they had before.

        With a ``mark``, also raise its crashes in the tallies, in the same step.
        """

    def count_crash(self, job_id: str) -> int:
        """Raise the crashes in these tallies by one; returns how many there are then."""

    def forget_tallies(self, job_id: str) -> None:
        """Forget the tallies."""

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """Give back jobs of lost replies: what ``tag`` reserved in the last ``since`` seconds, except ``known`` leases.

        A known lease of another tag does not count: the same job may have been reserved again under this one.
        The seconds count back from when this is carried out, which may be delayed (``UNDER_WAY``). The tag must already
        be retired.
        """

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        """Extend leases to ``retry_after`` from now; ``False`` for each that had ended."""

    def stage(self, queues: Sequence[str]) -> Staged:
        """Make due jobs ready, at most 1,000, and wake as many workers as jobs."""

    def finish(self, lease: Lease, ending: Ending) -> bool:
        """Remove a job that is done and write what follows from it, both or neither; ``False``: the lease was lost."""

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        """Record the job in the failed store, remove it and write what follows from it, all or nothing.

        Where the failed store is on another server, the record waits here to be forwarded (``Records.pending``).
        """

    def quarantine(self, lease: Lease, reason: str) -> bool:
        """Move a payload that the worker found not to be a job to the quarantine; ``reason`` is one word."""

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        """Write the states of running jobs, each only if its lease is still held."""

    def tallies(self, job_id: str) -> Tallies:
        """The exceptions and crashes of the job's earlier attempts."""

    def now(self) -> float:
        """The store's clock in Unix seconds, without a round trip if it was read lately."""

    def sizes(self, queue: str) -> Sizes:
        """How many payloads the queue holds."""

    def measure(self, queue: str) -> Measured:
        """About how many jobs the queue holds, and for how long the next one has been ready.

        For the steward, which looks every few seconds: cheap, however long the queue is.
        """

    def ask_for_room(self) -> None:
        """Raise ``StoreFull`` if there is no room for anything new; writes nothing.

        A full Redis still moves and ends jobs, so only a question tells it; a full database refuses whatever writes.
        """

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        """The first payloads in this state, up to ``most``: those that were or are due first; takes none of them.

        A database has them in the order in which they were pushed.
        """

    def queues(self) -> list[str]:
        """The names of all queues that are not empty, in order; scans the whole store."""

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        """Drop its ready, delayed and reserved jobs, but not the quarantine; returns how many there were.

        A job and the unique locks that ``finder`` finds end in one step; of a long queue each step drops a part.
        """


# Laravel's batches, as its table ``job_batches`` has them.


class Batch(NamedTuple):
    """A batch as it was when it was read; Laravel alone changes it."""

    id: str
    name: str
    #: jobs: all of them, those not yet done, and failures, of which a later retry takes none away
    total: int
    pending: int
    failed: int
    cancelled: bool


class Batches(Protocol):
    """The batches in one database."""

    def find(self, batch_id: str) -> Batch | None:
        """The batch; ``None`` if there is no such row."""
