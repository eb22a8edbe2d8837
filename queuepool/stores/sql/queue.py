"""Jobs in Laravel's ``jobs`` table; the contract is ``stores.contract.QueueStore``."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, not_, select

from queuepool.payload.lease import NOTHING, Ending, Lease, Lock, StateRecord, Tallies, Unlock
from queuepool.payload.members import NewFlow, NewMember
from queuepool.stores.contract import (
    Measured,
    MovedJob,
    NewJob,
    QueueWalk,
    Reservation,
    Shelf,
    ShelfJob,
    Sizes,
    Staged,
    Wake,
)
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.sql import postgresql
from queuepool.stores.sql.attempts import SqlAttempts
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.flows import SqlFlows
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.leases import LOCKED, Act, Leases
from queuepool.stores.sql.locks import marked
from queuepool.stores.sql.records import PENDING, SqlRecords, entry_of, payload_column
from queuepool.stores.sql.statements import row_of
from queuepool.stores.sql.texts import is_name
from queuepool.stores.sql.values import SqlValues
from queuepool.stores.sql.waiting import Waiting, waiting_for
from queuepool.stores.sql.walk import SqlWalk
from queuepool.stores.steps import in_steps
from queuepool.unix.originals import is_readable, sleep

#: most rows that one transaction adds
_ROWS_PER_PUSH = 1000
#: most rows that one transaction of a clear drops, and most whose payloads are read: what holds locks or is tracked
_ROWS_PER_CLEAR, _READ_PER_CLEAR = 10_000, 500
#: rows, and bytes, that one transaction drops or moves
_TAKEN, _TAKEN_BYTES = 500, 4 * 1024 * 1024
#: seconds for which the database's clock is assumed to run at the speed of ours
_CLOCK_LASTS = 10.0


class SqlQueue:
    """Laravel's queue in one database.

    ``records`` holds failed jobs and quarantined payloads; ``values`` the tallies, locks and states. ``locks_of``
    divides unique locks between this store and Laravel's cache. ``keep``: record failed jobs; ``outbox``: their records
    only wait here, for a failed store on another server. ``attempts``: keeps the records of those that end.
    """

    reserve_ahead = reserve_waiting = None  # not supported: the drivers wait for each reply

    def __init__(
        self,
        client: SqlClient,
        table: JobsTable,
        records: SqlRecords,
        values: SqlValues,
        locks_of: LocksOf,
        attempts: SqlAttempts,
        *,
        keep: bool = True,
        outbox: bool = False,
    ) -> None:
        self.client = client
        self.locks_of = locks_of
        self.flows = SqlFlows(client, table)
        self._table = table
        self.leases = Leases(client, table, records, attempts, self.flows)
        self.limits = self.leases.limits
        self._records, self._values = records, values
        self._keep = keep
        self._outbox = outbox
        self._offset = self._offset_ends = 0.0

    @property
    def clock(self) -> str:
        """'' for the database's, or a test's Unix seconds as text."""
        return self._table.clock

    @clock.setter
    def clock(self, fixed: str) -> None:
        self._table.clock = self._records.clock = fixed
        self._offset_ends = 0.0

    @property
    def polls(self) -> bool:
        """PostgreSQL notifies only of our own pushes, not of Laravel's; on other databases, ``wait`` polls for both."""
        return self.client.engine.dialect.name == "postgresql"

    @property
    def unanswered(self) -> int:
        return self.client.unanswered

    @property
    def commits_late(self) -> float:
        return self.client.commits_late

    def steps(self, jobs: Sequence[ShelfJob]) -> Iterator[Sequence[ShelfJob]]:
        return in_steps(jobs, _TAKEN, _TAKEN_BYTES, lambda job: len(job.payload))

    def reach(self) -> None:
        self.leases.reach()

    def join(self, old: int = 0, queues: Sequence[str] = ()) -> int:
        return self.leases.draw_tag()

    def retire(self, tag: int) -> None:
        """Nothing to do: jobs reserved by a late commit are searched for again (``commits_late``)."""

    def push(self, queue: str, jobs: Sequence[NewJob], delay: float = 0.0, lock: Lock | None = None) -> bool:
        self._table.examine()  # before the transaction
        if lock:
            self._values.examine()
        added = partial(self.push_within, queue=queue, delay=delay, lock=lock)
        if len(jobs) == 1 and not (lock or jobs[0].state):
            return self.client.single(partial(added, jobs=jobs))
        batches = (jobs[first : first + _ROWS_PER_PUSH] for first in range(0, len(jobs), _ROWS_PER_PUSH))
        return all(self.client.transaction(partial(added, jobs=batch)) for batch in batches)

    def push_within(
        self, connection: Connection, queue: str, jobs: Sequence[NewJob], delay: float, lock: Lock | None
    ) -> bool:
        """As ``push``, in the caller's transaction."""
        if lock and not self._values.take_within(connection, lock):
            return False
        self._table.push(connection, queue, [job.payload for job in jobs], delay)
        self._values.add_states(connection, [job.state for job in jobs if job.state])
        return True

    def write_flow(self, flow: NewFlow, members: Sequence[NewMember]) -> None:
        self.flows.write(flow, members)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        here = self.locks_of.here(unlocks)
        self.locks_of.found(self._values.release(here) if here else 0)

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        return self.leases.reserve(queues, tag, limit, done)

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        until_due = max(self.leases.next_due_at - time.monotonic(), 0.001)
        if until_due <= LOCKED:  # too soon for a query, which would find jobs ready that are only locked
            sleep(min(timeout, until_due))
            return

        def is_ready(connection: Connection) -> bool:
            return any(self._table.is_ready(connection, queue) for queue in queues)

        self.client.interruptible(lambda connection: self._waiting.wait(connection, is_ready, min(timeout, until_due)))

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> Wake | None:
        """Nothing needs staging here, as a row becomes due by itself and a worker knows when.

        Only PostgreSQL tells of news. The wait is outside of statements: who interrupts it needs the connection.
        """
        if self.client.engine.dialect.name != "postgresql":
            sleep(timeout)
            return None
        fd, has_come = self.client.interruptible(lambda c: (postgresql.news_on(c), postgresql.take_news(c)))
        if fd is None:
            sleep(timeout)
        elif not has_come and is_readable(fd, timeout):
            has_come = self.client.interruptible(postgresql.has_news)
        return Wake.NEWS if has_come else None

    def stage(self, queues: Sequence[str]) -> Staged:
        # A steward renews and settles others' jobs: it needs the former file while any lease in it may live.
        self.client.forget_former(unused_for=self._table.retry_after)
        return Staged(0, None, self.client.ask(self._table.now))

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return self.leases.renew(leases)

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return self.leases.if_held(leases, self._table.delete)

    def give_back(self, leases: Sequence[Lease], mark: str = "") -> list[bool]:
        def act(connection: Connection, ids: list[int]) -> None:
            self._table.give_back(connection, ids)
            self._values.count(connection, mark, "crashes" if mark else "")

        return self.leases.if_held(leases, act)

    def count_crash(self, job_id: str, queue: str = "") -> int:
        return self.client.transaction(lambda connection: self._values.count(connection, job_id, "crashes"))

    def forget_tallies(self, job_id: str, queue: str = "") -> None:
        self.client.ask(lambda connection: self._values.forget_counts(connection, job_id))

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """As the contract says, but ``since`` is ignored, as no other worker ever has this tag."""
        rows = {lease.row for lease in known if lease.tag == tag}
        lost_replies = [lease for lease in self.leases.of_tag(queues, tag) if lease.row not in rows]
        return [lease for lease, is_ours in zip(lost_replies, self.give_back(lost_replies), strict=True) if is_ours]

    def release(
        self, lease: Lease, delay: float, job_id: str, tally: str = "", state: StateRecord | None = None
    ) -> bool:
        follow = self._following(Ending(state=state), (), lease)

        def act(connection: Connection, ids: list[int]) -> None:
            self._table.release(connection, ids, lease.queue, delay, tally)
            self._values.count(connection, job_id, tally)
            follow(connection)

        return self.leases.if_held([lease], act)[0]

    def finish(self, lease: Lease, ending: Ending) -> bool:
        follow = self._following(ending, self.locks_of.here(ending.unlocks), lease)

        def act(connection: Connection, ids: list[int]) -> None:
            self._table.delete(connection, ids)
            follow(connection)

        return self.flows.settled(ending.member, self.leases.if_held([lease], act)[0])

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        act = self._failing(job_id, record, self._following(ending, self.locks_of.here(ending.unlocks), lease))
        return self.flows.settled(ending.member, self.leases.if_held([lease], act)[0])

    def cancel(self, lease: Lease, job_id: str, record: Mapping[str, Any], ending: Ending = NOTHING) -> bool:
        follow = self._following(ending, self.locks_of.own_among(ending.unlocks), lease)
        act, row = self._failing(job_id, record, follow), row_of(lease)

        def work(connection: Connection) -> bool:
            there = self._table.waiting_row(connection, row.id)
            # The bytes, too: SQLite gives the number of its last row to the next one.
            if there is None or (bytes_of(there.payload), there.attempts) != (lease.receipt, row.attempts):
                return False
            act(connection, [row.id])
            return True

        is_out = self.client.transaction(work)
        self.locks_of.release_elsewhere(ending.unlocks if is_out else ())
        return self.flows.settled(ending.member, is_out)

    def _failing(self, job_id: str, record: Mapping[str, Any], follow: Callable[[Connection], None]) -> Act:
        """Records the job in place of its row, and writes its ending."""

        def act(connection: Connection, ids: list[int]) -> None:
            if self._keep and self._outbox:
                self._table.move(connection, ids, PENDING, entry_of(record))
            else:
                self._table.delete(connection, ids)
                if self._keep:
                    self._records.add(connection, record)
            self._values.forget_counts(connection, job_id)
            follow(connection)

        return act

    def quarantine(self, lease: Lease, reason: str) -> bool:
        def act(connection: Connection, ids: list[int]) -> None:
            self._table.delete(connection, ids)
            self._records.quarantine(connection, lease, reason)

        return self.leases.if_held([lease], act)[0]

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        by_row = {row_of(lease).id: state for lease, state in zip(leases, states, strict=True)}

        def write(connection: Connection, ids: list[int]) -> None:
            for row in ids:
                self._values.write_state(connection, by_row[row])

        self.leases.if_held(leases, write)

    def tallies(self, job_id: str, queue: str = "") -> Tallies:
        return self._values.counts(job_id)

    def now(self) -> float:
        if self.clock or time.monotonic() >= self._offset_ends:
            now = self.client.ask(self._table.now)
            mono = time.monotonic()  # only now, so that the clock is never ahead
            self._offset, self._offset_ends = now - mono, mono + _CLOCK_LASTS
            return now
        return time.monotonic() + self._offset

    def sizes(self, queue: str) -> Sizes:
        def read(connection: Connection) -> Sizes:
            oldest = next(iter(self._table.first(connection, queue, 1)), None)
            ready, delayed, leased = self._table.count(connection, queue)
            return Sizes(ready, delayed, leased, self._records.count_quarantined(connection, queue), oldest)

        return self.client.ask(read)

    def measure(self, queue: str) -> Measured:
        """As the contract says. The age is exact: a row records since when it may be taken."""

        def read(connection: Connection) -> Measured:
            ready, delayed, reserved, is_at_least, oldest, now = self._table.measure(connection, queue)
            quarantined = self._records.count_quarantined(connection, queue)
            return Measured(ready, delayed, reserved, quarantined, oldest, now, is_at_least=is_at_least)

        return self.client.ask(read)

    def ask_for_room(self) -> None:
        """Nothing to ask: a full database refuses every write."""

    def first(self, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        return self.client.ask(partial(self._table.first, queue=queue, most=most, state=state))

    def walk(self, queue: str, shelves: Collection[Shelf], cursor: str = "") -> QueueWalk:
        return SqlWalk(self.client, self._table, queue, cursor)

    def drop(self, queue: str, jobs: Sequence[ShelfJob], finder: Finder = NO_LOCKS) -> list[bool]:
        finder = self._values.usable(finder)

        def act(connection: Connection, gone: list[ShelfJob]) -> None:
            for job in gone:
                if finder.may_hold(job.payload):
                    unlocks = self.locks_of.here(finder.locks_of(job.payload))
                    self._values.release_within(connection, unlocks)
            self._values.renew_states(connection, [finder.state_of(queue, job.payload, job.attempts) for job in gone])
            self._table.delete(connection, [job.place for job in gone])

        return self._if_free(queue, jobs, act)

    def move(self, queue: str, jobs: Sequence[MovedJob], target: str) -> list[bool]:
        there = {moved.job.place: moved for moved in jobs}
        are_followed = any(moved.state for moved in jobs) and self._values.keeps_states

        def act(connection: Connection, gone: list[ShelfJob]) -> None:
            moved = [there[job.place] for job in gone]
            changed = {job.place: payload for job, payload, _ in moved if payload != job.payload}
            self._table.rewrite(connection, changed)
            send = self._table.hasten if target == queue else self._table.send
            send(connection, [job.place for job in gone], target)
            self._values.renew_states(connection, [state for *_, state in moved if are_followed])

        return self._if_free(queue, [moved.job for moved in jobs], act)

    def _if_free(
        self, queue: str, jobs: Sequence[ShelfJob], act: Callable[[Connection, list[ShelfJob]], None]
    ) -> list[bool]:
        """``act`` on those of these jobs that no worker has, a step in a transaction; ``False`` for each other."""

        def work(connection: Connection, step: Sequence[ShelfJob]) -> set[int]:
            free = self._table.lock_free(connection, queue, {job.place: job.payload for job in step})
            if free:
                act(connection, [job for job in step if job.place in free])
            return free

        free = set[int]()
        for step in self.steps(jobs):
            free |= self.client.transaction(partial(work, step=step))
        return [job.place in free for job in jobs]

    def queues(self) -> list[str]:
        def read(connection: Connection) -> list[str]:
            return sorted({*self._table.queues(connection), *self._records.queues_quarantined(connection)} - {PENDING})

        return self.client.ask(read)

    def clear(self, queue: str, finder: Finder = NO_LOCKS) -> int:
        finder, dropped = self._values.usable(finder), 0
        if finder.tracks:  # their pool may track them, which their payloads do not say: look at each, or at none
            finder = finder._replace(tracks=(b"",) if self._values.has_states() else ())
        while found := self.client.transaction(partial(self._clear_some, queue=queue, finder=finder)):
            dropped += found
        return dropped

    def _clear_some(self, connection: Connection, queue: str, finder: Finder) -> int:
        jobs = self.client.tables.jobs
        in_queue = is_name(connection.dialect, jobs.c.queue, queue)
        first = select(jobs.c.id).where(in_queue).order_by(jobs.c.id).limit(_ROWS_PER_CLEAR).subquery()
        last = connection.execute(select(func.max(first.c.id))).scalar()
        if last is None:
            return 0
        # By a range, as their ids would be too many for one statement.
        these, holding = and_(in_queue, jobs.c.id <= last), marked(jobs, [*finder.marks, *finder.tracks])
        free = connection.execute(delete(jobs).where(these, not_(holding))).rowcount
        return free + self._drop_holding(connection, queue, and_(these, holding), finder)

    def _drop_holding(self, connection: Connection, queue: str, these: ColumnElement[bool], finder: Finder) -> int:
        """Drop the first of these rows together with their locks, and say so in their states."""
        if not (finder.marks or finder.tracks):
            return 0
        jobs = self.client.tables.jobs
        read = select(jobs.c.id, payload_column(connection, jobs), jobs.c.attempts).where(these)
        rows = connection.execute(read.order_by(jobs.c.id).limit(_READ_PER_CLEAR).with_for_update()).all()
        found = [(bytes_of(payload), attempts) for _, payload, attempts in rows]
        for raw, _ in found:
            unlocks = self.locks_of.here(finder.locks_of(raw)) if finder.may_hold(raw) else ()
            self._values.release_within(connection, unlocks)
        self._values.renew_states(connection, [finder.state_of(queue, raw, attempts) for raw, attempts in found])
        gone = delete(jobs).where(jobs.c.id.in_(bindparam("ids", expanding=True)))
        return connection.execute(gone, {"ids": [row.id for row in rows]}).rowcount if rows else 0

    def _following(self, ending: Ending, unlocks: Sequence[Unlock], lease: Lease) -> Callable[[Connection], None]:
        """Writes the ending in the transaction that ends the job, and releases these locks of its own store."""
        if unlocks:
            self._values.examine()

        def follow(connection: Connection) -> None:
            self.locks_of.found(self._values.release_within(connection, unlocks))
            if ending.outcome:
                self._table.push(connection, ending.outcome.queue, [ending.outcome.payload])
            if ending.state:
                self._values.write_state(connection, ending.state)
            if ending.member:
                self.flows.settle(connection, ending.member, lease)

        return follow

    @cached_property
    def _waiting(self) -> Waiting:
        return waiting_for(self.client.engine.dialect.name)
