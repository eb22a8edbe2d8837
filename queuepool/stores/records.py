"""The contract of records set aside: failed jobs, quarantined payloads, and failures that wait for another store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from queuepool.payload.lease import Lock, StateRecord, Unlock
from queuepool.payload.members import MemberOf
from queuepool.stores.locks import NO_LOCKS, Finder


class Returned(Enum):
    """The result of returning a job to its queue; true if it was returned."""

    DONE = 1
    #: there is no such job
    GONE = 0
    #: another job holds its unique lock
    HELD = -1
    #: the other store, to which it was to be moved, does not take it
    REFUSED = -2
    #: its flow is not kept any more, so that nothing would follow it
    ALONE = -3

    def __bool__(self) -> bool:
        return self is Returned.DONE


class RecordKey(NamedTuple):
    """Identifies a record: several may have one id at different times, but only one has this ``mark``."""

    id: str
    mark: str

    def is_behind(self, other: RecordKey) -> bool:
        """Whether it is listed after this one of the same store: it is older."""
        return (float(self.mark), self.id) < (float(other.mark), other.id)


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A row of the failed store; ``failed_at`` in Unix seconds of the store's clock.

    ``attempts`` is ``None`` if it is not recorded: Laravel's table has no column for it, so only the payload can have
    it, which Laravel's payloads in a database do not.
    """

    id: str
    name: str
    queue: str
    connection: str
    attempts: int | None
    payload: str
    exception: str
    failed_at: float
    mark: str = field(default="", compare=False)

    @property
    def key(self) -> RecordKey:
        """What identifies this record."""
        return RecordKey(self.id, self.mark)


class Retrying(NamedTuple):
    """A failed job that is to be put back, with the state that is written and the lock that is taken with it."""

    failed: FailedJob
    state: StateRecord | None = None
    lock: Lock | None = None


@dataclass(frozen=True, slots=True)
class PendingFailure:
    """A failed job's record that waits in the jobs' store for the failed store; its ``id`` is unique.

    ``record`` is empty if it is damaged.
    """

    id: str
    record: Mapping[str, Any]


#: the texts that every record needs
_TEXTS = ("id", "queue", "connection", "payload", "exception")


def sound_record(found: object) -> Mapping[str, Any]:
    """What was found, if it is a sound record of a failed job; else empty."""
    return found if isinstance(found, dict) and all(isinstance(found.get(name), str) for name in _TEXTS) else {}


def json_in(text: bytes) -> object:
    """A text from a store, which others can write to, decoded as JSON; ``None`` if it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A payload that cannot be a job, unchanged; ``at`` in Unix seconds."""

    id: str
    queue: str
    reason: str
    at: float
    payload: bytes


class FailedStore(Protocol):
    """Jobs that failed for good. Every verb here and below may raise ``StoreDown`` and ``StoreError``."""

    def now(self) -> float:
        """This store's clock, Unix seconds."""

    def count(self) -> int:
        """How many records there are."""

    def page(self, after: RecordKey | None = None, count: int = 1000) -> list[FailedJob]:
        """Up to ``count`` records, latest first: of those before this one, which need not exist any more."""

    def get(self, job_id: str) -> FailedJob | None:
        """The record with this id; ``None`` if there is none."""

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        """Return the job to its queue (or this one) with all its tries.

        ``state`` is written with it, for those that follow the job. ``lock`` is taken with it: if another job holds it,
        nothing is done.
        """

    def retry_all(self, jobs: Sequence[Retrying], queue: str | None = None) -> list[Returned]:
        """As ``retry`` for each of them, in few steps; each job is put back whole or not at all."""

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> list[bool]:
        """Drop these records, and no later ones of the same jobs; ``False`` for each that does not exist.

        The locks that ``finder`` finds in their payloads are released with them.
        """

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        """Records of jobs that failed before this Unix second, at most ``count``."""


class Records(FailedStore, Protocol):
    """All records set aside in one store: beside the jobs or, for failed jobs only, on another server."""

    # A failed store on another server, to which failures are forwarded

    def record(self, failure: PendingFailure) -> None:
        """Store its record; does nothing if the failure with this id is already recorded."""

    def holding(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        """The payloads of these records, as far as they may hold a lock."""

    def resume(self, job: Retrying, member: MemberOf, queue: str | None = None) -> Returned:
        """As ``retry``, in the store of jobs, of a member of a flow whose record is in another store.

        A repeat pushes a copy, which counts nothing once the member has ended.
        """

    # The outbox: failures that wait in the jobs' store for such a store, oldest first

    def count_pending(self) -> int:
        """How many failures wait."""

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]:
        """``count`` failures from number ``first`` on."""

    def drop_pending(self, failure: PendingFailure) -> None:
        """Remove a failure that was recorded. May be repeated."""

    # The quarantine: payloads that cannot be jobs

    def quarantined(self, queue: str) -> Iterator[Quarantined]:
        """The entries, oldest first, read page by page."""

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        """Put it at the tail of its queue, unchanged or as ``payload``; ``lock`` as for ``FailedStore.retry``."""

    def drop_quarantined(
        self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = (), state: StateRecord | None = None
    ) -> bool:
        """Drop an entry, and with it these locks; ``state``: what its kept state becomes.

        ``False`` when there is no such entry.
        """
