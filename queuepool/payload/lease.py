"""What a store is given for one job: a worker's lease on it, and what is written in the step that ends it.

A lease's tag is its fencing token: a store does nothing for a lease if the job has been leased to another since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from queuepool.payload.kept_step import StepsEnd
from queuepool.payload.members import MemberEnd


class LeaseRow(NamedTuple):
    """A leased job's place in a table: the row's id, and which attempt this is."""

    id: int
    attempts: int


class AttemptRecord(NamedTuple):
    """What is kept of an attempt, for ``seconds``: fields of a JSON object, in ASCII and without a newline."""

    job_id: str
    #: without the comma behind the last one
    text: str
    #: what all attempts of a process have in common; each with a comma before it
    by: str
    seconds: float


class Lease(NamedTuple):
    """A temporary right to a job: its queue, its bytes, and the tag of the worker that reserved it.

    Its proof is bytes and tag in Redis, row and tag in a table. Tags begin at 1; 0 is a reservation by another program.
    """

    queue: str
    receipt: bytes
    tag: int = 0
    row: LeaseRow | None = None
    #: what the verb that ends this lease writes of the attempt, in the same step
    record: AttemptRecord | None = None
    #: and what it does with the steps that are kept of the job, if any are
    steps: StepsEnd | None = None
    #: and the member of a flow that it settles: one that is done, with neither a result nor anything to add
    member: MemberEnd | None = None
    #: the name under which it may hold places of limits, which end with it; empty = it holds none
    holder: str = ""

    @property
    def attempts(self) -> int | None:
        """Which attempt this is, if a row counts them; ``None`` if the payload does."""
        return self.row.attempts if self.row else None


@dataclass(frozen=True, slots=True)
class Tallies:
    """How many exceptions the job's earlier attempts raised, and how many of them died with their worker.

    ``suspects``: how many ended with a worker that this job, or one running beside it, may have killed.
    """

    exceptions: int = 0
    crashes: int = 0
    suspects: int = 0


class Lock(NamedTuple):
    """A unique lock to take, by its name in Laravel's cache without the cache's prefix, for ``seconds``."""

    name: str
    owner: str
    seconds: float
    #: whether it belongs in Laravel's cache, and that is not in the job's store
    is_elsewhere: bool = False


class Unlock(NamedTuple):
    """A unique lock to release, by its name in Laravel's cache, without the cache's prefix."""

    name: str
    #: release it only if this owner holds it; empty = any
    owner: str = ""
    #: the kind of store that holds it: ``redis`` or ``sql``
    store: str = ""


class Outcome(NamedTuple):
    """A payload that informs Laravel how a job ended, and the queue that it is pushed to."""

    queue: str
    payload: bytes


class StateRecord(NamedTuple):
    """The state of a tracked job as JSON; the store keeps it for ``seconds``."""

    job_id: str
    text: bytes
    seconds: float


class Ending(NamedTuple):
    """What is written when a job ends; an empty one adds nothing."""

    outcome: Outcome | None = None
    unlocks: tuple[Unlock, ...] = ()
    state: StateRecord | None = None
    member: MemberEnd | None = None


NOTHING = Ending()
