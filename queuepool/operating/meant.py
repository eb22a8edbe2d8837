"""The jobs that an operator means: read once to be counted, then once more to be acted on, no others and no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from queuepool.operating.carrying_out import Errand
from queuepool.operating.scopes import Scope
from queuepool.search.bulk import BATCH, Act, OfFailedJobs, OfWaitingJobs
from queuepool.search.found import FoundJob
from queuepool.search.look import Look, QueueLook
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.contract import Shelf, ShelfJob
from queuepool.stores.limits import UNPARKED
from queuepool.stores.records import FailedJob, RecordKey, Returned

End = TypeVar("End")
Pages = Iterator[list[FoundJob]]
#: the first and the last of several records, as they are listed
Span = tuple[RecordKey | None, RecordKey | None]
#: failed jobs that are read at once by their ids
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Agreed(Generic[End]):
    """What was counted, to be agreed to: no more jobs than these, and none that came later."""

    count: int
    #: when the count began, in the store's Unix seconds
    until: float
    #: how far it came, in a queue a cursor
    end: End


class MeantWaiting:
    """The ready or delayed jobs of one queue that fit what ``look`` looks for. Its methods raise ``StoreError``.

    ``agreed``: as they were when another one counted them. Raises ``ValueError`` if too much has changed since.
    """

    def __init__(self, look: Look, queue: str, shelves: Collection[Shelf], agreed: Agreed[str] | None = None) -> None:
        self._look = look
        self._queue = queue
        self._met = look.waiting(queue, shelves, agreed.end if agreed else "")
        self._until = agreed.until if agreed else math.inf
        #: acted on at most
        self._count: float = agreed.count if agreed else math.inf

    def counted(self) -> Pages:
        """All of them; as many as were taken from here are the most that are acted on then."""
        self._until, self._count = self._look.stores.queue.now(), 0
        for page in self._met.pages():
            self._count += len(page)
            yield page

    def agreed(self) -> Agreed[str]:
        """What was counted."""
        return Agreed(int(self._count), self._until, self._met.cursor())

    def again(self) -> tuple[QueueLook, Pages]:
        """The same ones, from the beginning; not those that were pushed since they were counted."""
        found = self._met.again()
        pages = ([job for job in page if self._was_there(job)] for page in found.pages())
        return found, at_most(pages, self._count)

    def errand(self, act_of: Callable[[OfWaitingJobs], Act]) -> Errand:
        """To do something with them."""
        found, pages = self.again()
        return pages, act_of(acts_in(self._look, self._queue, found))

    def _was_there(self, job: FoundJob) -> bool:
        """Delayed jobs are read in the order in which they are due: a later one may be before others.

        One whose payload does not have its time counts as there.
        """
        return job.state != "delayed" or self._until == math.inf or (job.pushed or 0.0) <= self._until


class MeantParked:
    """The jobs of one queue that wait for places of limits and fit. Its methods raise ``StoreError``.

    While they are acted on, they are back in their queue, where for some seconds no worker takes them.
    """

    def __init__(self, look: Look, queue: str) -> None:
        self._look = look
        self._queue = queue
        self._until = math.inf

    def counted(self) -> Pages:
        """All of them."""
        self._until = self._look.stores.queue.now()
        return self._pages()

    def _pages(self) -> Pages:
        jobs = (job for job in self._look.parked(self._queue) if (job.pushed or 0.0) <= self._until)
        return iter(lambda: [*islice(jobs, BATCH)], [])

    def errand(self, act_of: Callable[[QueueLook], Act]) -> Errand:
        """To do something with those that were counted: what is done with delayed jobs that a look has found."""
        act = act_of(self._look.waiting(self._queue, ()))

        def acted(jobs: Sequence[FoundJob]) -> Iterator[Returned]:
            numbers = [job.where.place for job in jobs if isinstance(job.where, ShelfJob)]
            self._look.pace(lambda: self._look.stores.limits.unpark_these(self._queue, numbers, UNPARKED))
            yield from act(jobs)

        return self._pages(), acted


class MeantFailed:
    """The failed jobs of ``scope`` that fit what ``look`` looks for. Its methods raise ``StoreError``.

    ``agreed``: as they were when another one counted them.
    """

    def __init__(self, look: Look, scope: Scope, agreed: Agreed[Span] | None = None) -> None:
        self._look = look
        self._scope = scope
        self._until = agreed.until if agreed else scope.store.now()
        #: acted on at most
        self._count: float = agreed.count if agreed else math.inf
        #: the first and the last record that were counted: a database knows only the second of a failure
        self._first, self._last = agreed.end if agreed else (None, None)

    def counted(self) -> Pages:
        """All of them; as many as were taken from here are the most that are acted on then."""
        self._count, self._first, self._last = 0, None, None
        for page in self._scope.pages(self._look, self._until):
            self._count += len(page)
            if page:
                self._first, self._last = self._first or key_of(page[0]), key_of(page[-1])
            yield page

    def agreed(self) -> Agreed[Span]:
        """What was counted."""
        return Agreed(int(self._count), self._until, (self._first, self._last))

    def again(self) -> Pages:
        """The same ones; not those that have failed since they were counted."""
        return at_most(self._look.failed(self._was_there, self._until, last=self._last), self._count)

    def errand(self, act_of: Callable[[OfFailedJobs], Act]) -> Errand:
        """To do something with them."""
        return self.again(), act_of(acts_on(self._scope, self._look))

    def _was_there(self, record: FailedJob) -> bool:
        return self._scope.has(record) and not (self._first and self._first.is_behind(record.key))


def chosen_failed(look: Look, scope: Scope, ids: Sequence[str], keys: Collection[RecordKey] | None = None) -> Pages:
    """The failed jobs with these ids; ``keys``: only of these failures. Raises ``StoreError``."""
    for first in range(0, len(ids), _PAGE):
        some = ids[first : first + _PAGE]
        records = look.pace(lambda some=some: [*map(scope.get, some)])  # type: ignore[misc]
        yield [FoundJob.failed(one, look.commands) for one in records if one and (keys is None or one.key in keys)]


def acts_in(look: Look, queue: str, found: QueueLook) -> OfWaitingJobs:
    """What can be done with the jobs of a queue that were found."""
    return OfWaitingJobs(look, HeldLocks(look.stores.settings), queue, found)


def acts_on(scope: Scope, look: Look) -> OfFailedJobs:
    """What can be done with the failed jobs of a scope."""
    return OfFailedJobs(scope.queue.stores, scope.locks, look.pace)


def key_of(job: FoundJob) -> RecordKey:
    """The key of a failed job's record."""
    assert isinstance(job.where, FailedJob)
    return job.where.key


def at_most(pages: Pages, most: float) -> Pages:
    """The first so many of them."""
    for page in pages:
        some = page if len(page) <= most else page[: int(most)]
        most -= len(some)
        yield some
        if most <= 0:
            return
