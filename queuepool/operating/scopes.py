"""Which failed jobs are meant: those of all connections, or those of one pool's queues."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of, masked
from queuepool.jobs.client import Queue
from queuepool.operating.choice import Choice
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.records import FailedJob, FailedStore, RecordKey
from queuepool.unix.escape import counted

#: records in one batch
BATCH = 1000
#: most records that are read to count the chosen ones by queue
_MOST_READ = 20_000
#: most queues that are named
_MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class Scope:
    """The failed jobs of one connection that are meant."""

    queue: Queue
    locks: HeldLocks
    #: of these queues only; ``None``: of all
    queues: tuple[str, ...] | None
    #: the connections that share the failed store; records of any other belong to the first
    sharing: tuple[str, ...]

    @property
    def name(self) -> str:
        """The connection's name."""
        return self.queue.settings.name

    @property
    def store(self) -> FailedStore:
        """The store that holds them."""
        return self.queue.stores.failed

    @property
    def is_whole(self) -> bool:
        """Whether all records of the store are meant."""
        return self.queues is None and len(self.sharing) == 1

    @property
    def words(self) -> str:
        """What is meant, for people."""
        of_queues = "" if self.queues is None else f" of {_listed(self.queues)}"
        return f"{of_queues} on connection {self.name}"

    @property
    def place(self) -> str:
        """Where they are, for people."""
        return f" on connection {self.name} ({masked(self.queue.settings.url)})"

    def question(self, before: float | None = None) -> str:
        """How many jobs of which queues are meant, and where they are; empty for none.

        ``before``: those that failed before this Unix second.
        """
        if self.is_whole and before is None and (total := self.store.count()) > _MOST_READ:
            return f"{total} failed jobs{self.place}"
        meant = (record.queue for record in self.records() if before is None or record.failed_at < before)
        queues = Counter(meant)
        return f"{counted(queues.total(), 'failed job')}{self.place}{by_queue(queues)}" if queues else ""

    def has(self, record: FailedJob) -> bool:
        """Whether this record is meant."""
        owner = record.connection if record.connection in self.sharing else self.sharing[0]
        return owner == self.name and (self.queues is None or record.queue in self.queues)

    def records(self) -> Iterator[FailedJob]:
        """All that are meant, the latest first."""
        page = list[FailedJob]()
        while page := self.store.page(page[-1].key if page else None, BATCH):
            yield from filter(self.has, page)

    def pages(self, look: Look, until: float = math.inf, after: RecordKey | None = None) -> Iterator[list[FoundJob]]:
        """Those that ``look`` finds, latest first: none that failed after ``until``, a Unix second.

        ``after``: go on behind this record.
        """
        return look.failed(self.has, until, after)

    def get(self, job_id: str) -> FailedJob | None:
        """The record with this id, if it is meant."""
        record = self.store.get(job_id)
        return record if record and self.has(record) else None


@contextmanager
def scope_of(choice: Choice, connection: ConnectionSettings, *, queue: str | None = None) -> Iterator[Scope]:
    """The scope of one connection, opened; ``queue``: of this queue only."""
    opened = Queue(connection, by_hand=True)
    try:
        yield scope_on(choice, opened, queue=queue)
    finally:
        opened.close()


def scope_on(choice: Choice, opened: Queue, *, queue: str | None = None) -> Scope:
    """The scope of a connection that is open."""
    connection = opened.settings
    return Scope(opened, HeldLocks(connection), _queues(choice, connection, queue), _sharing(choice, connection))


def by_queue(queues: Counter[str]) -> str:
    """How many of each queue, the most first; empty for none."""
    counts = [f"{queue} {count}" for queue, count in queues.most_common() if count]
    more = f" and {counted(len(counts) - _MOST_NAMED, 'queue')} more" if len(counts) > _MOST_NAMED else ""
    return f": {', '.join(counts[:_MOST_NAMED])}{more}" if counts else ""


def _queues(choice: Choice, connection: ConnectionSettings, queue: str | None) -> tuple[str, ...] | None:
    chosen = choice.queues(connection) if choice.is_part else None
    if queue is None:
        return chosen
    choice.require(queue)
    return (queue,)


def _sharing(choice: Choice, connection: ConnectionSettings) -> tuple[str, ...]:
    """The configuration's connections whose failed jobs lie in the same place, in their order."""
    every = dict.fromkeys(pool.connection for pool in choice.load().pools)
    return tuple(one.name for one in every if _place(one) == _place(connection)) or (connection.name,)


def _place(connection: ConnectionSettings) -> tuple[str, ...]:
    url = connection.failed_url or connection.url
    of_redis = kind_of(url) == "redis"
    return (url, connection.prefix) if of_redis else (url, connection.schema, connection.failed_table)


def _listed(queues: tuple[str, ...]) -> str:
    return f"queue {queues[0]}" if len(queues) == 1 else f"queues {', '.join(queues)}"
