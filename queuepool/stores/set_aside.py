"""The contracts of the stores for what is set aside: jobs that failed, and payloads that could not be jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class RecordKey(NamedTuple):
    """Which record: of all that have one id at different times, the one with this ``mark``."""

    id: str
    mark: str


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A row of the failed store; ``failed_at`` in Unix seconds of the store's clock.

    ``attempts`` is ``None`` where nobody wrote down how many there were: Laravel's table has no place for it.
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
        return RecordKey(self.id, self.mark)


@dataclass(frozen=True, slots=True)
class PendingFailure:
    """The record of a failed job that waits in the jobs' store for the failed store; no two have one ``id``."""

    id: str
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A payload that could not be a job, as it was; ``at`` in Unix seconds."""

    id: str
    queue: str
    reason: str
    at: float
    payload: bytes


class FailedStore(Protocol):
    """Jobs that failed for good."""

    def now(self) -> float:
        """This store's clock, Unix seconds."""

    def count(self) -> int: ...

    def page(self, first: int = 0, count: int = 1000) -> list[FailedJob]:
        """``count`` records from the ``first`` on, the latest first."""

    def get(self, job_id: str) -> FailedJob | None: ...

    def retry(self, failed: FailedJob, queue: str | None = None) -> bool:
        """Put it back to its queue (or this one) with all its tries; ``False`` when it is gone already."""

    def drop(self, keys: Sequence[RecordKey]) -> int:
        """Drop these very records, and no later ones of the same jobs; gives how many there were."""

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        """Of jobs that failed before this Unix second, at most ``count``."""


class Records(FailedStore, Protocol):
    """A failed store on another server than the jobs."""

    def record(self, failure: PendingFailure) -> None:
        """Keep its record; does nothing when this very failure is recorded already, by its id."""


class Outbox(Protocol):
    """Failures that wait in the jobs' store, the oldest first."""

    def count_pending(self) -> int: ...

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]: ...

    def drop_pending(self, failure: PendingFailure) -> None:
        """It is recorded. May be called again."""


class QuarantineStore(Protocol):
    """Payloads that could not be jobs."""

    def entries(self, queue: str) -> Iterator[Quarantined]:
        """The oldest first, read page by page."""

    def put_back(self, queue: str, entry_id: str, payload: bytes | None = None) -> bool:
        """Back to the end of its queue, as it is or as ``payload``; ``False`` when there is no such entry."""

    def drop(self, queue: str, entry_id: str) -> bool: ...
