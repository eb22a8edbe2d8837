"""Jobs in Laravel's ``jobs`` table; the contract is ``stores.contract.QueueStore``."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlalchemy import Connection

from queuepool.errors import StoreDown
from queuepool.payload.lease import Lease, Row
from queuepool.stores.contract import Reservation, Staged
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.lease_tags import TAGS
from queuepool.stores.sql.leases import Leases
from queuepool.stores.sql.statements import SLACK
from queuepool.stores.sql.waiting import Waiting, waiting_for

#: how many jobs other workers may take while we choose
_RIVALS = 16
#: seconds after which to try again for a due job that another session had locked
_LOCKED = 0.01


class SqlQueue(Leases):
    """Laravel's queue in one database."""

    #: not supported: the drivers wait for each reply
    reserve_ahead = None
    _due_at = math.inf
    #: how often the file had been replaced when the tag was drawn
    _joined = 0

    @property
    def polls(self) -> bool:
        """PostgreSQL notifies of our own pushes only, not of Laravel's; on other databases, ``wait`` polls for both."""
        return self.client.engine.dialect.name == "postgresql"

    def reach(self) -> None:
        self.client.ask(lambda _: None)
        if self._joined != self.client.replaced:
            raise StoreDown("the file is another than the one in which this worker has drawn its tag")

    @property
    def unanswered(self) -> int:
        return self.client.unanswered

    @property
    def commits_late(self) -> float:
        return self.client.commits_late

    def join(self, old: int = 0) -> int:
        """A random tag of 268 million: a counter would repeat itself after a failover, or in a copy of the file."""
        self.client.ask(lambda _: None)
        self._joined = self.client.replaced
        return secrets.randbelow(TAGS - 1) + 1

    def retire(self, tag: int) -> None:
        """Nothing to do: jobs of a late commit are searched for again."""

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        found = self.client.transaction(lambda connection: self._reserve(connection, queues, tag, limit, done))
        if self.client.former:  # a worker that reserves again holds only done jobs from the former file
            answers = self._settle_in_former(found.refused, [False] * len(found.refused), self._delete)
            refused = [lease for lease, is_settled in zip(found.refused, answers, strict=True) if not is_settled]
            found = replace(found, refused=refused)
            self.client.forget_former()
        return found

    def wait(self, queues: Sequence[str], timeout: float) -> None:
        until_due = max(self._due_at - time.monotonic(), 0.001)
        if until_due <= _LOCKED:  # too soon for a query, which would find ready what is only locked
            time.sleep(min(timeout, until_due))
            return
        asked = [{"name": queue} for queue in queues]

        def look(connection: Connection) -> bool:
            return any(connection.execute(self._sql.is_ready, queue).first() for queue in asked)

        self.client.interruptible(lambda connection: self._waiting.wait(connection, look, min(timeout, until_due)))

    def wait_for_change(self, queues: Sequence[str], timeout: float) -> bool:
        """Only sleep: nothing needs staging here, as a row becomes due by itself and a worker knows when."""
        time.sleep(timeout)
        return False

    def stage(self, queues: Sequence[str]) -> Staged:
        # A steward renews and settles the jobs of others: it needs the former file while any of its leases may live.
        self.client.forget_former(unused_for=self._retry_after)
        return Staged(0, None, self._read_clock())

    @cached_property
    def _waiting(self) -> Waiting:
        return waiting_for(self.client.engine.dialect.name)

    def _reserve(
        self, connection: Connection, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease]
    ) -> Reservation:
        answers = self._settle_within(connection, done, self._delete) if done else []
        found = Reservation(refused=[lease for lease, is_ours in zip(done, answers, strict=True) if not is_ours])
        for queue in queues if limit else ():
            self._take(connection, queue, tag, limit - len(found.leases), found)
            if len(found.leases) == limit:
                break
        due = None if found.leases or not limit else self._next_due(connection, queues)
        self._due_at = math.inf if due is None else time.monotonic() + due
        return Reservation(found.leases, found.refused, found.quarantined, next_due=due)

    def _take(self, connection: Connection, queue: str, tag: int, most: int, found: Reservation) -> None:
        for number, payload, attempts in self._taken(connection, {"name": queue, "most": most, "tag": tag}):
            lease = Lease(queue, bytes_of(payload), tag, Row(number, attempts))
            if attempts < self._schema.most_attempts:
                found.leases.append(lease)
            else:
                # No further attempt could be counted: it would be retried forever.
                self._delete(connection, [number])
                self._failures.quarantine(connection, lease, "attempts")
                found.quarantined.append((queue, "attempts"))

    def _taken(self, connection: Connection, what: Mapping[str, Any]) -> list[tuple[int, Any, int]]:
        """Take rows: (id, payload, attempts) of each, oldest first."""
        if connection.dialect.update_returning:
            rows = connection.execute(self._sql.take, what)
            return sorted((number, payload, attempts) for number, payload, attempts in rows)
        near = {"name": what["name"], "most": 2 * what["most"] + _RIVALS}
        ids = list(connection.execute(self._sql.near, near).scalars())
        chosen = connection.execute(self._sql.choose, {**what, "ids": ids}).all() if ids else []
        if chosen:
            connection.execute(self._sql.mark, {"ids": [row.id for row in chosen], "tag": what["tag"]})
        most = self._schema.most_attempts
        return [(row.id, row.payload, min(max(row.attempts, 0) + 1, most)) for row in chosen]

    def _next_due(self, connection: Connection, queues: Sequence[str]) -> float | None:
        """Seconds to the next job, when there is none now; corrects leases that begin in the future."""
        now, available, first, last = connection.execute(self._sql.next_due, {"names": queues}).one()
        if last is not None and last > now + SLACK:
            connection.execute(self._sql.end_in_time, {"names": queues})
            first = min(first, now)
        ends = None if first is None else first + self._retry_after
        due = min((float(at) for at in (available, ends) if at is not None), default=None)
        return None if due is None else max(due - float(now), _LOCKED)
