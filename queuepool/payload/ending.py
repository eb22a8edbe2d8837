"""What is written to the store in the same step that ends a job, as plain values; and the locks of unique jobs."""

from __future__ import annotations

from typing import NamedTuple


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
    """A payload that tells Laravel how a job ended, and the queue that it is pushed to."""

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


NOTHING = Ending()
