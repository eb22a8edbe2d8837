"""Leases on rows of ``jobs``: taken in one transaction, and verified in each transaction that uses them."""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Connection

from queuepool.errors import StoreDenied, StoreDown, StoreError, StoreFull
from queuepool.payload.lease import Lease, LeaseRow
from queuepool.payload.limits import holding
from queuepool.stores.contract import Reservation
from queuepool.stores.sql.attempts import SqlAttempts
from queuepool.stores.sql.client import SqlClient, begin
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.flows import SqlFlows
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.limits import SqlLimits
from queuepool.stores.sql.postgresql import can_pipeline
from queuepool.stores.sql.records import SqlRecords
from queuepool.stores.sql.statements import SLACK, TAGS, marked, row_of
from queuepool.stores.sql.step_rows import StepRows

T = TypeVar("T")
_log = logging.getLogger("queuepool")
#: seconds for which no attempt is recorded after the database has no room or no right for it
_REFUSED = 60.0
_REFUSALS = StoreDenied, StoreFull
#: seconds after which to retry for a due job that another session had locked
LOCKED = 0.01
_MEMBER, _HOLDER = attrgetter("member"), attrgetter("holder")

#: what is done to the rows with these ids, in the transaction that has verified their leases
Act = Callable[[Connection, list[int]], object]


class _Members:
    """Deletes jobs that are done, and settles the members of flows among them."""

    def __init__(self, table: JobsTable, flows: SqlFlows, done: Sequence[Lease]) -> None:
        self._table = table
        self._flows = flows
        self._done = done
        #: of which flows ``SqlFlows.to_go_on`` is to be asked after the commit
        self.quiet = list[str]()

    def __call__(self, connection: Connection, ids: list[int]) -> None:
        self._table.delete(connection, ids)
        members = {row_of(lease).id: lease.member for lease in self._done if lease.member}
        self.quiet = self._flows.settle_done(connection, [members[row] for row in ids if row in members])

    def settle_and_take(
        self, connection: Connection, queue: str, tag: int, most: int
    ) -> tuple[set[tuple[int, ...]], list[tuple[int, Any, int]]]:
        """As in ``JobsTable``."""
        settled = self._flows.done_members.settle_and_take(connection, self._done, queue, tag, most)
        self.quiet = settled.flows
        return settled.held, settled.taken


class Leases:
    """The leases of one process; rows whose attempts cannot be counted further are quarantined in ``records``."""

    def __init__(
        self, client: SqlClient, table: JobsTable, records: SqlRecords, attempts: SqlAttempts, flows: SqlFlows
    ) -> None:
        self._attempts = attempts
        self._flows = flows
        #: whose places end with leases
        self.limits = SqlLimits(client, table)
        self._steps = StepRows(client)
        self._client = client
        self._table = table
        self._records = records
        #: how often the file had been replaced when the tag was drawn
        self._joined = 0
        #: until when records of attempts are left out (monotonic)
        self._unrecorded_until = 0.0
        #: when the next job is due if the last ``reserve`` took none, by the monotonic clock
        self.next_due_at = math.inf

    def draw_tag(self) -> int:
        """A random tag, one of 268 million: a counter would repeat after a failover, or in a copy of the file."""
        self._client.ask(lambda _: None)
        self._joined = self._client.replaced
        return secrets.randbelow(TAGS - 1) + 1

    def reach(self) -> None:
        """Connect, unless connected. Raises ``StoreDown`` if the file is not the one in which the tag was drawn."""
        self._client.ask(lambda _: None)
        if self._joined != self._client.replaced:
            raise StoreDown("the SQLite file was replaced after this worker took its tag")

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease]) -> Reservation:
        """As the contract says."""
        members = _Members(self._table, self._flows, done) if any(map(_MEMBER, done)) else None
        act = members or self._table.delete
        if done and done[0].record:
            found = self._with_all(done, lambda c, done: self._reserve(c, queues, tag, limit, done, act), begins=True)
        else:
            found = self._client.transaction(lambda c: self._reserve(c, queues, tag, limit, done, act), begins=True)
        if members and members.quiet:
            found = replace(found, flows=self._flows.to_go_on(members.quiet, found.leases))
        if self._client.former:  # a worker that reserves again holds only done jobs from the former file
            answers = self._if_held_in_former(found.refused, [False] * len(found.refused), act)
            found = replace(found, refused=_refused(found.refused, answers))
            lost = {lease.row for lease in found.refused}
            self._record(done, [lease.row not in lost for lease in done])
            self._client.forget_former()
        return found

    def of_tag(self, queues: Sequence[str], tag: int) -> list[Lease]:
        """The leases under this tag, as the table has them."""
        rows = self._client.ask(lambda connection: self._table.leased_to(connection, queues, tag))
        return [
            Lease(queue, bytes_of(payload), tag, LeaseRow(number, attempts))
            for number, queue, payload, attempts in rows
        ]

    def if_held(self, leases: Sequence[Lease], act: Act) -> list[bool]:
        """``act`` on the rows of the leases that are still held, in one transaction; ``False`` for each lost lease.

        What ``act`` does elsewhere in the database belongs to the same transaction.
        """
        if not leases:
            return []
        if leases[0].record or leases[0].steps:
            answers = self._with_all(leases, lambda c, leases: self._begin_if_held(c, leases, act), begins=True)
        else:
            answers = self._client.transaction(lambda c: self._begin_if_held(c, leases, act), begins=True)
        if self._client.former:
            answers = self._if_held_in_former(leases, answers, act)
            self._record(leases, answers)
        return answers

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        """Restart leases, and with them the places that they hold."""

        def act(connection: Connection, ids: list[int]) -> None:
            self._table.renew(connection, ids)
            if self.limits.in_use:
                self.limits.places.renew(connection, [holding(lease) for lease in leases if row_of(lease).id in ids])

        return self.if_held(leases, act)

    def _with_all(
        self, leases: Sequence[Lease], work: Callable[[Connection, Sequence[Lease]], T], *, begins: bool = False
    ) -> T:
        """What this does with the leases in a transaction; again without their records, or steps, if those are refused.

        No job waits for them; and of a transaction that was refused, nothing was done.
        """
        first: StoreError | None = None
        for way in self._ways(leases):
            try:
                done = self._tried(work, way, begins)
            except StoreError as refused:
                if isinstance(refused, StoreDown) and not isinstance(refused, _REFUSALS):
                    raise
                first = first or refused
                continue
            if first:
                self._leave_out(first, leases[0], way[0])
            return done
        assert first
        raise first

    def _tried(self, work: Callable[[Connection, Sequence[Lease]], T], leases: Sequence[Lease], begins: bool) -> T:
        return self._client.transaction(lambda connection: work(connection, leases), begins=begins)

    def _ways(self, leases: Sequence[Lease]) -> Iterator[Sequence[Lease]]:
        """With all that the leases say, and with less and less of it."""
        records, steps = leases[0].record is not None, leases[0].steps is not None
        if records and time.monotonic() < self._unrecorded_until:
            records, leases = False, [lease._replace(record=None) for lease in leases]
        yield leases
        if steps:
            yield [lease._replace(steps=None) for lease in leases]
        if records:
            yield [lease._replace(record=None) for lease in leases]
        if steps and records:
            yield [lease._replace(record=None, steps=None) for lease in leases]

    def _leave_out(self, refused: StoreError, lease: Lease, done: Lease) -> None:
        if lease.steps and not done.steps:
            _log.warning("what is kept of the steps of a job stays as it is: %s", refused)
        if lease.record and not done.record:
            if isinstance(refused, _REFUSALS):
                self._unrecorded_until = time.monotonic() + _REFUSED
            _log.warning("an attempt is not recorded: %s", refused)

    def _record(self, leases: Sequence[Lease], answers: Sequence[bool]) -> None:
        """Write what was left out until it was known whether the leases were held in the former file."""
        if leases and leases[0].record:
            with suppress(StoreError):  # the leases have ended
                self._client.transaction(partial(self._attempts.add, leases=leases, are_held=answers))

    def _if_held_in_former(self, leases: Sequence[Lease], answers: list[bool], act: Act) -> list[bool]:
        """Do the same for refused leases in the former SQLite file, from which they may have come."""
        former = self._client.former
        if former is None or all(answers):
            return answers
        held = former.transaction(lambda c: self._if_held_within(c, leases, act))
        if any(held):
            former.was_of_use()
        return [either or other for either, other in zip(answers, held, strict=True)]

    def _if_held_within(self, connection: Connection, leases: Sequence[Lease], act: Act) -> list[bool]:
        """As ``if_held``, in this transaction: until it ends, no other can take the leases."""
        return self._act_if_held(connection, leases, act, self._table.leased(connection, _ids(leases)))

    def _begin_if_held(self, connection: Connection, leases: Sequence[Lease], act: Act) -> list[bool]:
        """As ``_if_held_within``, in a transaction that it begins."""
        return self._act_if_held(connection, leases, act, self._table.begin_and_see(connection, _ids(leases)))

    def _act_if_held(
        self, connection: Connection, leases: Sequence[Lease], act: Act, existing: set[tuple[int, ...]]
    ) -> list[bool]:
        answers = [marked(lease) in existing for lease in leases]
        if any(answers):
            act(connection, [row_of(lease).id for lease, is_held in zip(leases, answers, strict=True) if is_held])
        self._keep(connection, leases, answers)
        return answers

    def _keep(self, connection: Connection, leases: Sequence[Lease], answers: Sequence[bool]) -> None:
        """Write what is kept of attempts that end in this transaction."""
        if (end := leases[0].steps) and answers[0]:  # of a job that ends alone
            self._steps.end(connection, end)
        if any(map(_HOLDER, leases)):
            ended = [lease for lease, is_held in zip(leases, answers, strict=True) if is_held and lease.holder]
            self.limits.places.leave(connection, ended)
        if leases[0].record and not self._client.former:  # all that one call ends have one, or none has
            self._attempts.add(connection, leases, answers)

    def _reserve(
        self, connection: Connection, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease], act: Act
    ) -> Reservation:
        """In a transaction that it begins."""
        found = Reservation()
        rest = self._begin(connection, queues if limit else (), tag, limit, done, act, found)
        for queue in rest:
            if len(found.leases) == limit:
                break
            rows = self._table.take(connection, queue, tag, limit - len(found.leases))
            self._add(connection, queue, tag, rows, found)
        due = None if found.leases or not limit else self._next_due(connection, queues)
        self.next_due_at = math.inf if due is None else time.monotonic() + due
        return replace(found, next_due=due)

    def _begin(
        self, connection: Connection, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease], act: Act,
        found: Reservation,
    ) -> Sequence[str]:  # fmt: skip
        """Begin, end what is done, and if one statement can do that too, take jobs of the first queue; the others."""
        if not (queues and can_pipeline(connection)):
            begin(connection)
            answers = self._if_held_within(connection, done, act) if done else []
            found.refused.extend(_refused(done, answers))
            return queues
        if isinstance(act, _Members):
            held, rows = act.settle_and_take(connection, queues[0], tag, limit)
        else:
            held, rows = self._table.settle_and_take(connection, map(marked, done), queues[0], tag, limit)
        answers = [marked(lease) in held for lease in done]
        if done:
            self._keep(connection, done, answers)
        found.refused.extend(_refused(done, answers))
        self._add(connection, queues[0], tag, rows, found)
        return queues[1:]

    def _add(
        self, connection: Connection, queue: str, tag: int, rows: Sequence[tuple[int, Any, int]], found: Reservation
    ) -> None:
        """What was taken into jobs and what could not be one, which is set aside."""
        for number, payload, attempts in rows:
            lease = Lease(queue, bytes_of(payload), tag, LeaseRow(number, attempts))
            if payload is None:
                self._records.quarantine_row(connection, self._client.tables.jobs, number, "too-large")
                self._table.delete(connection, [number])
                found.quarantined.append((queue, "too-large"))
            elif attempts < self._table.most_attempts:
                found.leases.append(lease)
            else:
                # No further attempt could be counted: it would be retried forever.
                self._table.delete(connection, [number])
                self._records.quarantine(connection, lease, "attempts")
                found.quarantined.append((queue, "attempts"))

    def _next_due(self, connection: Connection, queues: Sequence[str]) -> float | None:
        """Seconds to the next job, if none is ready; corrects leases that begin in the future."""
        now, available, first, last = self._table.times(connection, queues)
        if last is not None and last > now + SLACK:
            self._table.end_in_time(connection, queues)
            first = min(first, now)
        ends = None if first is None else first + self._table.retry_after
        due = min((float(at) for at in (available, ends) if at is not None), default=None)
        return None if due is None else max(due - float(now), LOCKED)


def _refused(leases: Sequence[Lease], answers: Sequence[bool]) -> list[Lease]:
    return [lease for lease, is_held in zip(leases, answers, strict=True) if not is_held]


def _ids(leases: Sequence[Lease]) -> list[int]:
    return [row_of(lease).id for lease in leases]
