"""The contract of a store of jobs; ``records``, ``values`` and ``flows`` have the other contracts.

Times are seconds; the store's own clock decides what is due.

Every verb may raise ``StoreDown`` (worth a retry) or ``StoreError`` (not worth one). After ``StoreDown`` it is unknown
whether the verb was carried out or will be: the network may deliver it after its caller gave up.
``delete``, ``finish``, ``release``, ``give_back``, ``fail``, ``quarantine`` and ``renew`` may be repeated: they are
conditional on the lease, which no later reservation of the same job equals. ``push`` and ``reserve`` may not. After an
unanswered call of any verb, and when another server answers at the same address, a worker takes a new tag, and no
reserve is carried out under the old one (``join``).

A verb that ends a lease also writes the lease's ``record``, if it has one (``attempts``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

from queuepool.payload.lease import NOTHING, Ending, Lease, Lock, StateRecord, Tallies, Unlock
from queuepool.payload.limits import PlaceAsked
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.flows import FlowEnd, Flows
from queuepool.stores.limits import JobLimits
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf

#: where a queue keeps a job
Shelf = Literal["ready", "delayed", "reserved"]
#: given as the tally of a release that uses up no try
NO_TRY = "none"
#: seconds for which a call may be on its way before it is carried out
UNDER_WAY = 60.0
#: seconds after which a pool that has published nothing counts as gone
NOTICE_LASTS = 30.0
#: seconds for which its last notice is still kept, so that its loss can be noticed
NOTICE_KEPT = 3600.0
#: Unix seconds from here on are damaged values: in the year 5138, well before the last that a ``datetime`` can hold
NO_SECOND = 10**11


@dataclass(frozen=True, slots=True)
class Reservation:
    """The result of ``reserve``; ``next_due``: seconds from now, ``None`` if no job waits or some were reserved."""

    leases: list[Lease] = field(default_factory=list)
    #: the done jobs whose leases were lost
    refused: list[Lease] = field(default_factory=list)
    #: (queue, reason) for each payload that went to the quarantine
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    #: (queue, the server's error) for each queue that could not be served
    problems: list[tuple[str, str]] = field(default_factory=list)
    next_due: float | None = None
    #: whether no other job was ready in these queues, as far as this reserve has looked
    is_last: bool = False
    #: what has become of the flows whose members were among the done jobs, for ``Flows.after``
    flows: Sequence[FlowEnd] = ()


class WaitingReserve(Protocol):
    """A reserve sent behind a wait: the server carries it out when the wait ends, before we have read that.

    A call of any other verb before the reply was read gives the reserve up.
    """

    #: whether the server ended the connection before the wait was answered: then nothing was reserved, unless it has
    #: died at that very moment
    was_cut_off: bool

    def deleted(self) -> Reservation:
        """The reply for the ``done`` jobs that were sent along, which are deleted before the wait; call it first."""

    def wait(self) -> None:
        """Block until the reply comes; a signal handler may raise out of it."""

    def read(self) -> Reservation | None:
        """The reply; ``None`` if it has not come yet: then the reserve is given up, and counts as unanswered.

        Raises ``StoreError`` if the server refused to wait and nothing was reserved.
        """

    def give_up(self) -> None:
        """Close the connection. The reserve counts as unanswered: the server may still carry it out."""


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
        """Laravel's size: all jobs that are not done."""
        return self.ready + self.delayed + self.reserved


@dataclass(frozen=True, slots=True)
class Measured:
    """What one queue holds; times in seconds by the store's clock."""

    ready: int
    delayed: int
    reserved: int
    quarantined: int
    #: for how long the next job has been ready, 0.0 = none is; ``None``: only its payload may show it
    oldest: float | None
    #: when it was measured, in Unix seconds
    now: float
    #: the next job, where its age is ``None``
    payload: bytes | None = None
    #: for how long the first delayed job has been due without being staged
    overdue: float = 0.0
    #: whether there are more jobs than were counted
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class Control:
    """The values of the control keys: the restart stamp (``None``: no such key), what is paused, and maintenance."""

    restart: str | None = None
    paused: frozenset[str] = frozenset()
    down: bool = False
    #: the paused ones
    schedules: frozenset[str] = frozenset()
    #: when (Unix seconds) and by whom queues were paused, for those that record it
    pauses: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    #: the same for schedules; under an empty name, for all of them
    schedule_pauses: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    #: the same for maintenance mode; ``None`` if it is unknown
    down_by: tuple[float, str] | None = None
    #: changes when an operator has done something, or has sent a command to a pool
    news: str | None = None


class NewJob(NamedTuple):
    """A job to push: its payload, and its first state if it is tracked."""

    payload: bytes
    state: StateRecord | None = None
    #: the digest of its id, and the places that it will need, if the dispatch knows its limits
    word: str = ""
    asked: Sequence[PlaceAsked] = ()


class ShelfJob(NamedTuple):
    """A job of a queue as the store holds it, unread. Times in Unix seconds by the store's clock."""

    payload: bytes
    shelf: Shelf
    #: its position: in a database the number of its row, in Redis roughly its index in the list
    place: int = 0
    #: ``None``: only the payload has them
    attempts: int | None = None
    #: when a delayed job is due, or when a reserved one's lease ends; ``None`` for a ready one
    at: float | None = None
    #: the tag of the worker that reserved it; 0 for a reservation by another program
    tag: int = 0


class MovedJob(NamedTuple):
    """A job that is to be moved, its payload there, as a signature names the queue, and what its kept state becomes."""

    job: ShelfJob
    payload: bytes
    state: StateRecord | None = None


class QueueWalk(Protocol):
    """Reads a queue from one end to the other while others take from it and add to it.

    A job that stays where it is throughout is read once; jobs added to the ready ones meanwhile are not read. Where
    jobs move from one shelf to another (Redis), a job may be read on both.
    """

    def page(self, most: int) -> list[ShelfJob]:
        """The next jobs, at most ``most``; none at the end."""

    def unread(self, jobs: Sequence[ShelfJob]) -> None:
        """Read these, the last ones of the last page, again."""

    def taken(self, jobs: Sequence[ShelfJob]) -> None:
        """These jobs, which it has read, are gone: the caller has taken them out."""

    def cursor(self) -> str:
        """Its position, for ``QueueStore.walk``."""

    def again(self) -> QueueWalk:
        """The same walk from its beginning, up to where this one has come on each shelf that it has begun.

        Of what was added since, it may read delayed jobs that are due before others (Redis), and no others.
        """


class PushStore(Protocol):
    """Where jobs are pushed to: a store, a transaction of the application's, or a list that waits for its commit."""

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        """Add jobs in their order, each with its state; with a ``delay``, all become ready after it.

        All or none of each thousand; all their states are kept for the same time. With a ``lock``, for one job:
        ``False``, and nothing is written, if another job holds it.
        """

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        """As ``Flows.write``; in a transaction, all of it or nothing."""


class Wake(Enum):
    """Why a steward should look at once."""

    #: a job may be due earlier than the last ``stage`` returned
    DUE = "due"
    #: operators have sent commands, or done something; a job may be due as well
    NEWS = "news"


class QueueStore(PushStore, Protocol):
    """A store of queues and their jobs."""

    #: how ``finish``, ``fail`` and ``unlock`` find unique locks, and whether the last call found any
    locks_of: LocksOf

    @property
    def flows(self) -> Flows:
        """The flows of its jobs, which ``finish``, ``fail`` and ``cancel`` go on with."""

    @property
    def limits(self) -> JobLimits:
        """The limits of its jobs; the verbs that end a lease also end the places that it holds."""

    @property
    def polls(self) -> bool:
        """Whether jobs may arrive that do not end a ``wait``."""

    def steps(self, jobs: Sequence[ShelfJob]) -> Iterator[Sequence[ShelfJob]]:
        """These jobs in the parts that ``drop`` and ``move`` each take in one step: of several, some may be taken when
        they raise."""

    def reach(self) -> None:
        """Connect, unless connected; raises ``StoreDown`` before any command is sent."""

    @property
    def unanswered(self) -> int:
        """How many calls of this process were never answered; each may still be carried out.

        In Redis, a change of the server counts too, as the new one may not know our tag. The ``reach`` or the call that
        reconnects notices it.
        """

    @property
    def commits_late(self) -> float:
        """Seconds for which a transaction of a retired tag may still be committed; 0.0 where none can be."""

    def join(self, old: int = 0, queues: Sequence[str] = ()) -> int:
        """A tag that no other living worker of these ``queues`` has; the worker's former one, ``old``, is retired."""

    def retire(self, tag: int) -> None:
        """Reserve nothing more under this tag, even for calls that are still under way."""

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        """Release unique locks of a job that continues; a lock held by another owner stays."""

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        """Delete ``done``, stage what is due, take up to ``limit`` jobs in strict queue priority; never blocks.

        Members of flows among ``done`` are settled first, in the same step: what follows them may be taken at once.
        Raises ``TagRetired``, having done nothing, when the tag is no longer registered.
        """

    @property
    def reserve_ahead(self) -> Callable[[Sequence[str], int, int, Sequence[Lease]], Callable[[], Reservation]] | None:
        """As ``reserve``, but only sends it: call the result to read the reply. ``None`` if a store cannot.

        Other verbs may be called in between.
        """

    @property
    def reserve_waiting(self) -> Callable[[Sequence[str], float, int, int, Sequence[Lease]], WaitingReserve] | None:
        """As ``wait`` and then ``reserve``, but only sends both; ``None`` if a store cannot.

        Arguments: queues, timeout, tag, limit, done, of which none is a member of a flow. A lease is counted from when
        the wait ends.
        """

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        """Block until a job may be ready or ``timeout`` is over; a signal handler may raise out of it."""

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> Wake | None:
        """Block until a steward should look, as far as the store tells of it, or ``timeout`` is over (``None``)."""

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        """Remove done jobs, of which none is a member of a flow; ``False`` for each whose lease was lost."""

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        """Retry the job after ``delay``, raise one of its tallies by one, and write its state.

        ``tally``: ``exceptions``, ``crashes``, ``suspects``; '' = none. With ``NO_TRY`` its attempts are as before.
        """

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        """Return jobs to the head of their queues, in their order, with their former attempts.

        With a ``mark``, a job id, also raise its crashes in the tallies, in the same step.
        """

    def count_crash(self, job_id: str, queue: str = "") -> int:
        """Raise the crashes in the job's tallies by one; returns the new number. ``queue``: as for ``tallies``."""

    def forget_tallies(self, job_id: str, queue: str = "") -> None:
        """Forget the job's tallies. ``queue``: as for ``tallies``."""

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """Give back jobs of lost replies: what ``tag`` reserved in the last ``since`` seconds, except ``known`` leases.

        A known lease of another tag does not count: the same job may have been reserved again under this one. The
        seconds count back from when this is carried out, which may be later (``UNDER_WAY``). The tag must be retired
        first.
        """

    def renew(self, leases: Sequence[Lease]) -> Sequence[bool | None]:
        """Extend leases to ``retry_after`` from now; ``False`` for each that has ended, ``None``: its node is away."""

    def stage(self, queues: Sequence[str]) -> Staged:
        """Make due jobs ready, at most 1,000, and wake as many workers as jobs."""

    def finish(self, lease: Lease, ending: Ending) -> bool:
        """Remove a done job and write its ``ending``, both or neither; ``False`` if the lease was lost."""

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        """Record the job in the failed store, remove it and write its ``ending``, all or nothing.

        Where the failed store is on another server, the record waits here to be forwarded (``Records.pending``).
        """

    def cancel(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        """As ``fail``, for a job that waits, under a lease that nobody holds; ``False`` if it waits there no longer.

        It may be repeated.
        """

    def quarantine(self, lease: Lease, reason: str) -> bool:
        """Move to the quarantine a payload that the worker found not to be a job; ``reason`` is one word."""

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        """Write the states of running jobs, each only if its lease is still held."""

    def tallies(self, job_id: str, queue: str = "") -> Tallies:
        """How the job's earlier attempts ended, as far as counted; ``queue`` is its own, where a cluster keeps that."""

    def now(self) -> float:
        """The store's clock in Unix seconds, without a round trip if it was read recently."""

    def sizes(self, queue: str) -> Sizes:
        """How many payloads the queue holds."""

    def measure(self, queue: str) -> Measured:
        """About how many jobs the queue holds, and for how long the next one has been ready.

        The steward asks every few seconds: cheap, however long the queue is.
        """

    def ask_for_room(self) -> None:
        """Raise ``StoreFull`` if there is no room for anything new; writes nothing.

        A full Redis still moves and ends jobs, so nothing else shows it; a full database refuses every write.
        """

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        """Up to ``most`` payloads in this state, those that were or are due first; takes none of them.

        A database returns them in the order in which they were pushed.
        """

    def walk(self, queue: str, shelves: Collection[Shelf], cursor: str = "") -> QueueWalk:
        """Read at least the jobs on these shelves in pages; ``cursor``: from there on.

        A database returns all jobs of the queue. Raises ``ValueError`` for a wrong cursor, and for one whose place is
        gone, and ``StoreError``.
        """

    def drop(self, queue: str, jobs: Sequence[ShelfJob], finder: Finder = NO_LOCKS) -> list[bool]:
        """Drop these ready and delayed jobs, each with the unique locks that ``finder`` finds.

        In the same step the state of each becomes what ``finder`` says, if one is kept. ``False`` for each that is not
        there any more.
        """

    def move(self, queue: str, jobs: Sequence[MovedJob], target: str) -> list[bool]:
        """Move these ready and delayed jobs to another queue, each in one step; states and answers as in ``drop``.

        Delayed jobs that are to go to their own ``queue`` stay there and become due now.
        """

    def queues(self) -> list[str]:
        """The names of all queues that are not empty, in order; scans the whole store."""

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        """Drop its ready, delayed and reserved jobs, but not the quarantine; returns how many there were.

        A job and the unique locks that ``finder`` finds are dropped in one step, in which its state, if one is kept,
        becomes what ``finder`` says; a long queue takes several steps.
        """
