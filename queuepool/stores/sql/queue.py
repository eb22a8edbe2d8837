"""Jobs in Laravel's ``jobs`` table; the contract is ``stores.contract.QueueStore``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from sqlalchemy import Connection

from queuepool.payload.ending import NOTHING, Ending, Lock, StateRecord, Unlock
from queuepool.payload.lease import Lease, Tallies
from queuepool.stores.contract import NewJob, Reservation, Shelf, Sizes, Staged
from queuepool.stores.locks import NO_LOCKS, Finder
from queuepool.stores.sql.cache import SqlCache
from queuepool.stores.sql.clearing import Clearing
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.endings import SqlEndings
from queuepool.stores.sql.failed_table import Failures
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.leases import LOCKED, Leases
from queuepool.stores.sql.outbox import PENDING, entry_of
from queuepool.stores.sql.waiting import Waiting, waiting_for
from queuepool.unix.originals import sleep

#: most rows that one transaction adds
_ADDED = 1000
#: seconds for which the database's clock is assumed to run at the speed of ours
_CLOCK_LASTS = 10.0


class SqlQueue:
    """Laravel's queue in one database.

    ``cache`` keeps the tallies; ``endings`` writes what goes with the end of a job. ``keep``: record failed jobs in
    ``failures``, where quarantined payloads are too. ``outbox``: they only wait here, for a failed store elsewhere.
    """

    reserve_ahead = None  # not supported: the drivers wait for each reply

    def __init__(
        self,
        client: Client,
        table: JobsTable,
        leases: Leases,
        cache: SqlCache,
        endings: SqlEndings,
        failures: Failures,
        clearing: Clearing,
        *,
        keep: bool = True,
        outbox: bool = False,
    ) -> None:
        self.client = client
        self._table = table
        self._leases = leases
        self._cache = cache
        self._endings, self.locks_of = endings, endings.locks_of
        self._failures = failures
        self._clearing = clearing
        self._keep = keep
        self._outbox = outbox
        self._offset = self._offset_ends = 0.0

    @property
    def clock(self) -> str:
        """'' for the database's, or a test's Unix seconds as text."""
        return self._table.clock

    @clock.setter
    def clock(self, fixed: str) -> None:
        self._table.clock = self._failures.clock = fixed
        self._offset_ends = 0.0

    @property
    def polls(self) -> bool:
        """PostgreSQL notifies of our own pushes only, not of Laravel's; on other databases, ``wait`` polls for both."""
        return self.client.engine.dialect.name == "postgresql"

    @property
    def unanswered(self) -> int:
        return self.client.unanswered

    @property
    def commits_late(self) -> float:
        return self.client.commits_late

    def reach(self) -> None:
        self._leases.reach()

    def join(self, old: int = 0) -> int:
        return self._leases.draw_tag()

    def retire(self, tag: int) -> None:
        """Nothing to do: jobs of a late commit are searched for again."""

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        self._endings.examine(lock)
        added = partial(self._endings.push, queue=queue, delay=delay, lock=lock)
        batches = (jobs[first : first + _ADDED] for first in range(0, len(jobs), _ADDED))
        return all(self.client.transaction(partial(added, jobs=batch)) for batch in batches)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        self._endings.unlock(unlocks)

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        return self._leases.reserve(queues, tag, limit, done)

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        until_due = max(self._leases.next_due_at - time.monotonic(), 0.001)
        if until_due <= LOCKED:  # too soon for a query, which would find ready what is only locked
            sleep(min(timeout, until_due))
            return

        def is_ready(connection: Connection) -> bool:
            return any(self._table.is_ready(connection, queue) for queue in queues)

        self.client.interruptible(lambda connection: self._waiting.wait(connection, is_ready, min(timeout, until_due)))

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> bool:
        """Only sleep: nothing needs staging here, as a row becomes due by itself and a worker knows when."""
        sleep(timeout)
        return False

    def stage(self, queues: Sequence[str]) -> Staged:
        # A steward renews and settles the jobs of others: it needs the former file while any of its leases may live.
        self.client.forget_former(unused_for=self._table.retry_after)
        return Staged(0, None, self._read_clock())

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return self._leases.if_held(leases, self._table.renew)

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return self._leases.if_held(leases, self._table.delete)

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        def act(connection: Connection, ids: list[int]) -> None:
            self._table.give_back(connection, ids)
            self._cache.count(connection, mark, "crashes" if mark else "")

        return self._leases.if_held(leases, act)

    def count_crash(self, job_id: str) -> int:
        return self.client.transaction(lambda connection: self._cache.count(connection, job_id, "crashes"))

    def forget_tallies(self, job_id: str) -> None:
        self.client.ask(lambda connection: self._cache.forget_counts(connection, job_id))

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """As the contract says, except for ``since``: no other worker ever has this tag, so it is ignored."""
        rows = {lease.row for lease in known if lease.tag == tag}
        lost_replies = [lease for lease in self._leases.of_tag(queues, tag) if lease.row not in rows]
        return [lease for lease, is_ours in zip(lost_replies, self.give_back(lost_replies), strict=True) if is_ours]

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        follow = self._endings.following(Ending(state=state))

        def act(connection: Connection, ids: list[int]) -> None:
            self._table.release(connection, ids, lease.queue, delay)
            self._cache.count(connection, job_id, tally)
            follow(connection)

        return self._leases.if_held([lease], act)[0]

    def finish(self, lease: Lease, ending: Ending) -> bool:
        follow = self._endings.following(ending)

        def act(connection: Connection, ids: list[int]) -> None:
            self._table.delete(connection, ids)
            follow(connection)

        return self._leases.if_held([lease], act)[0]

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        follow = self._endings.following(ending)

        def act(connection: Connection, ids: list[int]) -> None:
            if self._keep and self._outbox:
                self._table.move(connection, ids, PENDING, entry_of(record))
            else:
                self._table.delete(connection, ids)
                if self._keep:
                    self._failures.add(connection, record)
            self._cache.forget_counts(connection, job_id)
            follow(connection)

        return self._leases.if_held([lease], act)[0]

    def quarantine(self, lease: Lease, reason: str) -> bool:
        def act(connection: Connection, ids: list[int]) -> None:
            self._table.delete(connection, ids)
            self._failures.quarantine(connection, lease, reason)

        return self._leases.if_held([lease], act)[0]

    def tallies(self, job_id: str) -> Tallies:
        return self._cache.counts(job_id)

    def now(self) -> float:
        if self.clock or time.monotonic() >= self._offset_ends:
            now, mono = self._read_clock(), time.monotonic()  # in this order: so the clock is never ahead
            self._offset, self._offset_ends = now - mono, mono + _CLOCK_LASTS
            return now
        return time.monotonic() + self._offset

    def sizes(self, queue: str) -> Sizes:
        def read(connection: Connection) -> Sizes:
            oldest = next(iter(self._table.first(connection, queue, 1)), None)
            ready, delayed, leased = self._table.count(connection, queue)
            return Sizes(ready, delayed, leased, self._failures.count_quarantined(connection, queue), oldest)

        return self.client.ask(read)

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        return self.client.ask(partial(self._table.first, queue=queue, most=most, state=state))

    def queues(self) -> list[str]:
        def read(connection: Connection) -> list[str]:
            return sorted({*self._table.queues(connection), *self._failures.queues_quarantined(connection)} - {PENDING})

        return self.client.ask(read)

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        return self._clearing.clear(queue, finder)

    @cached_property
    def _waiting(self) -> Waiting:
        return waiting_for(self.client.engine.dialect.name)

    def _read_clock(self) -> float:
        return self.client.ask(self._table.now)
