"""The contract of limits: places that jobs hold while they run, and those that wait for one. See ``docs/limits.md``.

A place belongs to a lease and ends with it: in the step that ends the lease, or, if its host is lost, by the second at
which the lease does. A job that finds no place is parked: it leaves its queue without having used up a try, and lines
up at the limit that has refused it, in its queue and partition. Whoever gives a place back hands it to the next of
those, which goes back to the head of its queue, while the place is kept for it. So no job looks again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from queuepool.payload.lease import Lease
from queuepool.payload.limits import PlaceAsked, job_word, name_of

#: seconds for which a place is kept for the job that it was handed to; a job that starts later may take it
GRANT_LASTS = 0.2
#: seconds for which no worker takes a job that was parked, while somebody takes it out of its queue
UNPARKED = 5.0
#: keys, and lines of those that wait, which are read for a person or a measurement
MOST_KEYS = MOST_LINES = 1000
#: jobs in a line that are counted before one
MOST_BEFORE = 1000


class Admission(NamedTuple):
    """What became of a job that wanted to start."""

    is_in: bool
    #: the key of the limit at which it is parked; empty with ``is_in=False``: its lease was lost
    parked_at: str = ""


class Entering(NamedTuple):
    """A job that wants to start: the lease that holds it, with its holder, and the places that it needs."""

    lease: Lease
    job_id: str
    asked: Sequence[PlaceAsked]

    @property
    def granted(self) -> str:
        """The name under which a place is kept for it."""
        return f"{job_word(self.job_id)} {self.lease.queue}"


class Parking(Protocol):
    """Parks jobs of one worker at a key, in one step."""

    def __call__(self, key: str, jobs: Sequence[Entering]) -> list[bool | None]:
        """Park those that would be refused there, as ``enter`` would.

        Of each: ``True`` = it is parked; ``False`` = not, it has yet to enter; ``None``: its lease was lost.
        """


class LimitRecord(NamedTuple):
    """A limit as it was when read. ``per``: seconds, 0.0 = for as long as a job runs."""

    name: str
    number: int
    per: float
    #: the number that an operator has set, which is in force
    by_hand: int | None

    @property
    def in_force(self) -> int:
        """The number that counts."""
        return self.number if self.by_hand is None else self.by_hand


class LimitLine(NamedTuple):
    """Those of one queue and partition that wait at a key. ``jobs`` may count some that were taken out by hand."""

    queue: str
    part: str
    jobs: int
    #: the number of the first of them: the lowest of several has waited the longest
    first: int


class KeyRecord(NamedTuple):
    """Who holds places at a key, and who waits there, in turn."""

    key: str
    held: int
    #: places that are kept for jobs which are about to start
    granted: int
    parked: tuple[LimitLine, ...]
    #: whether more may wait there than were counted
    is_cut: bool = False


class LimitSum(NamedTuple):
    """A limit with what is at its keys."""

    limit: LimitRecord
    keys: tuple[KeyRecord, ...]
    held: int
    granted: int
    parked: int
    #: whether more may be parked than were counted
    is_at_least: bool

    @property
    def first(self) -> LimitLine | None:
        """The line whose first job waits the longest."""
        return min((line for key in self.keys for line in key.parked), key=lambda line: line.first, default=None)


def sums_of(limits: Sequence[LimitRecord], keys: Sequence[KeyRecord], most: int = MOST_KEYS) -> list[LimitSum]:
    """Each limit, in order, with those of the keys that are its own; ``most``: as many were asked for."""
    at = {limit.name: list[KeyRecord]() for limit in limits}
    for key in keys:
        at.get(name_of(key.key), []).append(key)
    return [_sum(limit, at[limit.name], is_cut=len(keys) >= most) for limit in limits]


def _sum(limit: LimitRecord, keys: Sequence[KeyRecord], *, is_cut: bool) -> LimitSum:
    parked = sum(line.jobs for key in keys for line in key.parked)
    held, granted = sum(key.held for key in keys), sum(key.granted for key in keys)
    return LimitSum(limit, tuple(keys), held, granted, parked, is_cut or any(key.is_cut for key in keys))


class PlaceRecord(NamedTuple):
    """A place that is taken until then, in Unix seconds by the store's clock, unless it is given back or renewed."""

    key: str
    until: float
    #: the queue of the job that holds it, and its payload; empty: not found, or a start that is counted
    queue: str = ""
    payload: bytes = b""


class ParkedJob(NamedTuple):
    """A parked job as the store holds it, unread."""

    payload: bytes
    #: ``None``: only the payload has them
    attempts: int | None = None
    #: where it waits, and how many are before it in its line, up to ``MOST_BEFORE``; ``None``: not asked, or unknown
    key: str | None = None
    before: int | None = None
    #: in its store; in a database that of its row
    number: int = 0


class JobLimits(Protocol):
    """The limits of the jobs in one store."""

    #: whether jobs of this process's pool may hold places, so that these are renewed with their leases
    in_use: bool
    #: whether a reserve gives back the places of the jobs that it ends
    end_with_reserve: bool

    def enter(self, lease: Lease, job_id: str, asked: Sequence[PlaceAsked], start: str = "") -> Admission:
        """Take all these places, or park the job. May be repeated with the same ``start``, a random word: it then finds
        what it has taken.
        """

    @property
    def park_behind(self) -> Parking | None:
        """For jobs that a worker holds behind one that was parked; ``None``: they enter as quickly one by one."""

    def parked(self, queue: str) -> int:
        """How many jobs of the queue are parked."""

    def find(self, queue: str, job_id: str) -> ParkedJob | None:
        """This job, if it is parked, and where it waits; reads all that are parked of the queue."""

    def pages(self, queue: str) -> Iterator[list[ParkedJob]]:
        """All that are parked of the queue; in Redis in no order, and one may come twice."""

    def unpark(self, queue: str, job_id: str = "", delay: float = 0.0) -> int:
        """Put this parked job, or all of the queue, back into the queue; returns how many there were.

        Workers park again what still has no place; only who takes jobs out of queues needs this. ``delay``: seconds for
        which no worker takes them.
        """

    def unpark_these(self, queue: str, numbers: Sequence[int], delay: float) -> int:
        """As ``unpark``, those with these numbers that are still parked, all in one step."""

    def sweep(self, name: str | None = None) -> float | None:
        """Hand on what has come free by itself; returns seconds until something may, ``None`` = no job waits.

        ``name``: first look at this limit, which has changed; '' = at all.
        """

    def all(self) -> list[LimitRecord]:
        """The limits that are known, by name."""

    def by_key(self, name: str = "", most: int = MOST_KEYS, lines: int = MOST_LINES) -> list[KeyRecord]:
        """The keys at which jobs hold places or wait, of this limit or of all, in order; ``most`` of them.

        Reads a bounded part of the store, however many wait: at most so many ``lines``, but one of each key.
        """

    def holders(self, keys: Sequence[str], queues: Sequence[str], most: int) -> list[PlaceRecord]:
        """Who holds places at these keys, up to ``most`` of each; jobs are looked for among those that workers have
        reserved of these ``queues``, or a bounded part of them.
        """

    def parked_job(self, queue: str, number: int) -> bytes | None:
        """The payload of the parked job with this number; ``None``: it is not parked any more."""

    def set(self, name: str, number: int | None) -> bool:
        """Set the number by hand, over what code says; ``None`` = as code says. ``False``: there is no such limit."""

    def declare(self, name: str, number: int, per: float) -> LimitRecord | None:
        """Say what this process's code says of the limit; returns what other code has said before, if that differs."""
