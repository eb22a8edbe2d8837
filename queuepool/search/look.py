"""Looks through a connection's queues, failed jobs and quarantine for jobs that fit a filter, page by page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from queuepool.errors import TableMissing
from queuepool.search.ended import ASKEW, EachOnce, EndedAttempt
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.settlement.endings import commands_of
from queuepool.stores.contract import QueueWalk, Shelf, ShelfJob
from queuepool.stores.factory import Stores
from queuepool.stores.pace import StorePace
from queuepool.stores.records import FailedJob, RecordKey
from queuepool.stores.steps import PageSize

SHELVES: tuple[Shelf, ...] = ("ready", "delayed", "reserved")
#: jobs that are remembered, so that one that moves on meanwhile is found once
_REMEMBERED = 100_000


class Look:
    """Looks for jobs that fit ``wanted``. What it asks of the store takes at most half of the store's time.

    Its methods raise ``StoreError``. An encrypted job whose key is not known fits no filter of arguments.
    """

    def __init__(self, stores: Stores, wanted: Filter) -> None:
        self.stores = stores
        self.wanted = wanted
        self.pace = StorePace()
        self.commands = commands_of(stores.settings)
        #: how many jobs were looked at, and how many of them had arguments that could not be read
        self.seen = self.closed = 0

    def waiting(self, queue: str, shelves: Collection[Shelf], cursor: str = "") -> QueueLook:
        """The jobs of a queue, from ``cursor`` on. Raises ``ValueError`` for a wrong cursor."""
        return QueueLook(self, queue, shelves, self.stores.queue.walk(queue, shelves, cursor))

    def in_states(self, queue: str, states: Collection[str], running: Container[str] = ()) -> Iterator[FoundJob]:
        """The jobs of a queue in these states, each once; of the reserved ones, those with the ids in ``running`` run.

        They are also found as ``reserved``, as Laravel calls them.
        """
        wanted = {"reserved" if state == "running" else state for state in states}
        shelves = [shelf for shelf in SHELVES if shelf in wanted]
        for job in self.waiting(queue, shelves).jobs() if shelves else ():
            if job.state == "reserved" and job.id in running:
                job.state = "running"
            if job.state in states or (job.state == "running" and "reserved" in states):
                yield job

    def parked(self, queue: str) -> Iterator[FoundJob]:
        """Those of the queue that wait for places of limits, each once."""
        pages, known = self.stores.limits.pages(queue), set[str]()
        with suppress(TableMissing):  # the database was made before there were limits
            while (page := self.pace(lambda: next(pages, None))) is not None:
                likely = [job for job in page if self.wanted.may_match(job.payload)]
                self.seen += len(page) - len(likely)
                for job in self.fitting(FoundJob.parked(one, queue, self.commands) for one in likely):
                    if job.id not in known:
                        yield job
                    if len(known) < _REMEMBERED:
                        known.add(job.id)

    def failed(
        self,
        is_meant: Callable[[FailedJob], bool],
        until: float,
        after: RecordKey | None = None,
        last: RecordKey | None = None,
    ) -> Iterator[list[FoundJob]]:
        """The failed jobs, latest first, in pages; none that has failed after ``until``, in Unix seconds.

        ``after``: only those behind this record; ``last``: none behind this one.
        """
        size = PageSize()
        while page := self._failed_after(after, size.jobs):
            after = page[-1].key
            size.fit(len(record.payload) + len(record.exception) for record in page)
            near = [one for one in page if not (last and one.key.is_behind(last))]
            meant = (one for one in near if one.failed_at <= until and is_meant(one))
            yield list(self.fitting(FoundJob.failed(one, self.commands) for one in meant))
            if len(near) < len(page):
                break

    def quarantined(self, queue: str) -> Iterator[FoundJob]:
        """The payloads in a queue's quarantine, oldest first."""
        entries = self.stores.records.quarantined(queue)
        return self.fitting(FoundJob.quarantined(one, self.commands) for one in entries)

    def ended(self, queue: str) -> Iterator[FoundJob]:
        """The attempts at the queue's jobs that are kept, about the latest first."""
        pages, each = self.stores.attempts.pages(queue), EachOnce()
        while (page := self.pace(lambda: next(pages, None))) is not None:
            found = each.page(page)
            yield from self._ended(found)
            if found and self.wanted.since is not None and found[-1].ended < self.wanted.since - ASKEW:
                break
        yield from self._ended(each.rest())

    def _ended(self, attempts: Sequence[EndedAttempt]) -> Iterator[FoundJob]:
        return self.fitting(FoundJob.ended(one, self.commands) for one in reversed(attempts))

    def fitting(self, jobs: Iterable[FoundJob]) -> Iterator[FoundJob]:
        """Those that fit."""
        for job in jobs:
            self.seen += 1
            is_found = self.wanted.matches(job)
            self.closed += job.is_closed
            if is_found:
                yield job

    def _failed_after(self, last: RecordKey | None, most: int) -> list[FailedJob]:
        return self.pace(lambda: self.stores.failed.page(last, most))


class QueueLook:
    """The jobs of one queue that fit, in pages."""

    def __init__(self, look: Look, queue: str, shelves: Collection[Shelf], walk: QueueWalk) -> None:
        self._look = look
        self._queue = queue
        self._shelves = shelves
        self._walk = walk
        self._page: list[ShelfJob] = []

    def pages(self) -> Iterator[list[FoundJob]]:
        """All of them; a page may be empty."""
        size = PageSize()
        while page := self._next(size.jobs):
            self._page = page
            size.fit(len(job.payload) for job in page)
            here = [job for job in page if job.shelf in self._shelves]
            likely = [job for job in here if self._look.wanted.may_match(job.payload)]
            self._look.seen += len(here) - len(likely)
            jobs = (FoundJob.waiting(job, self._queue, self._look.commands) for job in likely)
            yield list(self._look.fitting(jobs))

    def jobs(self) -> Iterator[FoundJob]:
        """Each once, although in Redis it may move to another shelf meanwhile, or be tried again."""
        known = dict[str, tuple[str, int | None]]()
        for page in self.pages():
            for job in page:
                at = job.state, job.attempts
                if known.setdefault(job.id, at) == at:  # several may have one id
                    yield job
            if len(known) > 2 * _REMEMBERED:
                known = dict(islice(known.items(), _REMEMBERED, None))

    def again(self) -> QueueLook:
        """The same jobs from the beginning, without those that were pushed since this look began."""
        return QueueLook(self._look, self._queue, self._shelves, self._look.pace(self._walk.again))

    def taken(self, jobs: Iterable[ShelfJob]) -> None:
        """These are gone: the caller has taken them out."""
        self._walk.taken(list(jobs))

    def cursor_after(self, job: FoundJob) -> str:
        """Where to go on after this one of the last page."""
        place = next(number for number, one in enumerate(self._page) if one is job.where)
        self._walk.unread(self._page[place + 1 :])
        return self._walk.cursor()

    def cursor(self) -> str:
        """Where to go on after the last page."""
        return self._walk.cursor()

    def _next(self, most: int) -> list[ShelfJob]:
        return self._look.pace(lambda: self._walk.page(most))
