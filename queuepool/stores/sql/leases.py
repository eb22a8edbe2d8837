"""The verbs for held jobs: each is one transaction, and touches only rows that are still as they were reserved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from queuepool.payload.lease import Lease, Row, Tallies
from queuepool.stores.sql.cache import SqlCache
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import later
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.failed_table import Failures
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.lease_tags import marked, row_of
from queuepool.stores.sql.outbox import PENDING, entry_of

End = Callable[[Connection, list[int]], object]


class Leases(JobsTable):
    """``shelf`` keeps the tallies; ``keep``: record failed jobs.

    ``outbox``: their records only wait here, for a failed store on another server.
    """

    def __init__(
        self,
        client: Client,
        retry_after: float,
        shelf: SqlCache,
        failures: Failures,
        *,
        keep: bool = True,
        outbox: bool = False,
    ) -> None:
        super().__init__(client, retry_after, failures)
        self._shelf = shelf
        self._keep = keep
        self._outbox = outbox

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return self._settle(leases, self._delete)

    def release(self, lease: Lease, delay: float, job_id: str, tally: str = "") -> bool:
        def end(connection: Connection, ids: list[int]) -> None:
            # A new row, as in Laravel: a retried job comes after those that wait.
            connection.execute(self._sql.release, {"ids": ids, "later": later(delay)})
            self._delete(connection, ids)
            if tally:
                self._shelf.count(connection, job_id, tally)
            self._tell(connection, lease.queue)

        return self._settle([lease], end)[0]

    def give_back(self, leases: Sequence[Lease]) -> list[bool]:
        return self._settle(leases, self._give_back)

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> list[Lease]:
        """As the contract says, except for ``since``: no other worker ever has this tag, so it is ignored."""
        asked = {"names": list(queues), "tag": tag}
        rows = self.client.ask(lambda connection: connection.execute(self._sql.taken_by, asked).all())
        taken = [
            Lease(queue, bytes_of(payload), tag, Row(number, attempts)) for number, queue, payload, attempts in rows
        ]
        held = {lease.row for lease in known}
        lost_replies = [lease for lease in taken if lease.row not in held]
        return [lease for lease, is_ours in zip(lost_replies, self.give_back(lost_replies), strict=True) if is_ours]

    def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return self._settle(leases, lambda connection, ids: connection.execute(self._sql.renew, {"ids": ids}))

    def fail(self, lease: Lease, job_id: str, record: Mapping[str, Any]) -> bool:
        def end(connection: Connection, ids: list[int]) -> None:
            if self._keep and self._outbox:
                connection.execute(self._sql.set_aside, {"ids": ids, "name": PENDING, "raw": entry_of(record)})
            else:
                self._delete(connection, ids)
                if self._keep:
                    self._failures.add(connection, record)
            self._shelf.forget_counts(connection, job_id)

        return self._settle([lease], end)[0]

    def quarantine(self, lease: Lease, reason: str) -> bool:
        def end(connection: Connection, ids: list[int]) -> None:
            self._delete(connection, ids)
            self._failures.quarantine(connection, lease, reason)

        return self._settle([lease], end)[0]

    def tallies(self, job_id: str) -> Tallies:
        return self._shelf.counts(job_id)

    def _settle(self, leases: Sequence[Lease], end: End) -> list[bool]:
        answers = self.client.transaction(lambda c: self._settle_within(c, leases, end)) if leases else []
        return self._settle_in_former(leases, answers, end)

    def _settle_in_former(self, leases: Sequence[Lease], answers: list[bool], end: End) -> list[bool]:
        """Settle refused leases in the former SQLite file, from which they may have come."""
        former = self.client.former
        if former is None or all(answers):
            return answers
        there = former.transaction(lambda c: self._settle_within(c, leases, end))
        if any(there):
            former.was_of_use()
        return [either or other for either, other in zip(answers, there, strict=True)]

    def _settle_within(self, connection: Connection, leases: Sequence[Lease], end: End) -> list[bool]:
        """``end`` the leases that are still held; they stay held to the end of the transaction."""
        rows = connection.execute(self._sql.ours, {"ids": [row_of(lease).id for lease in leases]})
        there = {tuple(row) for row in rows}
        answers = [marked(lease) in there for lease in leases]
        if any(answers):
            end(connection, [row_of(lease).id for lease, is_ours in zip(leases, answers, strict=True) if is_ours])
        return answers

    def _delete(self, connection: Connection, ids: list[int]) -> None:
        connection.execute(self._sql.delete, {"ids": ids})

    def _give_back(self, connection: Connection, ids: list[int]) -> None:
        connection.execute(self._sql.give_back, {"ids": ids})
        self._tell(connection, "")
