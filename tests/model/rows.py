"""Each verb of the SQL store on one list of rows, without SQL; marks are compared by their form alone.

Times are Unix seconds; the list's order is that of the rows' ids, which the table gives out and the model learns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.support.samples import TALLIES

RETRY_AFTER = 90
#: seconds in which a reservation may begin in the future
SLACK = 5


class Holder(NamedTuple):
    """A worker of ours, and the attempt that it is at."""

    tag: int
    attempts: int

    @property
    def mark(self) -> int:
        """What the table shows of it."""
        return 4 * self.tag + self.attempts % 4


@dataclass(slots=True)
class Row:
    queue: str
    payload: bytes | None
    available_at: int
    created_at: int
    attempts: int = 0
    reserved_at: int | None = None
    #: the last of ours that had it, as long as nobody gave it back
    holder: Holder | None = None
    #: 0 until the table has said it
    id: int = 0

    def shown(self) -> tuple[object, ...]:
        """The columns of the table without the id."""
        return self.queue, self.payload, self.attempts, self.reserved_at, self.available_at, self.created_at

    def is_held_by(self, holder: Holder) -> bool:
        return self.reserved_at is not None and self.holder == holder and self.attempts == holder.attempts

    def free(self, now: int) -> None:
        """As it was before it was reserved."""
        self.reserved_at, self.holder, self.available_at, self.attempts = None, None, now, self.attempts - 1


class Kept(NamedTuple):
    """A row of ``failed_jobs``; ``identity`` is '' where it is drawn, ``reason`` where it was a job."""

    identity: str
    queue: str
    payload: bytes
    reason: str
    at: int


@dataclass(slots=True)
class Taken:
    leases: list[tuple[str, bytes, int, Holder]] = field(default_factory=list)
    odd: list[tuple[str, str]] = field(default_factory=list)
    #: seconds from now
    next_due: float | None = None


class Rows:
    """All three tables; ``most`` is the largest number that ``attempts`` holds."""

    def __init__(self, now: float, most: int) -> None:
        self.now = now
        self.most = most
        self.jobs: list[Row] = []
        self.kept: list[Kept] = []
        self.tallies: Counter[tuple[str, str]] = Counter()

    @property
    def second(self) -> int:
        """That has begun."""
        return math.floor(self.now)

    def of(self, queue: str) -> list[Row]:
        return [row for row in self.jobs if row.queue == queue]

    def held(self, number: int, holder: Holder) -> Row | None:
        """The row, if it is still who held it that has it."""
        return next((row for row in self.jobs if row.id == number and row.is_held_by(holder)), None)

    def push(self, queue: str, payloads: Sequence[bytes], delay: float) -> None:
        self.jobs += [Row(queue, payload, self._after(delay), self.second) for payload in payloads]

    def is_takable(self, row: Row) -> bool:
        if row.reserved_at is None:
            return row.available_at <= self.second
        return row.reserved_at + RETRY_AFTER <= self.second

    def reserve(self, queues: Sequence[str], tag: int, limit: int) -> Taken:
        taken = Taken()
        for queue in queues:
            takable = filter(self.is_takable, self.of(queue))
            for row in list(takable)[: limit - len(taken.leases)]:
                self._take(row, tag, taken)
        if limit and not taken.leases:
            taken.next_due = self._next_due(queues)
        return taken

    def _take(self, row: Row, tag: int, taken: Taken) -> None:
        row.attempts = max(row.attempts, 0) + 1
        if row.attempts >= self.most:
            self.quarantine(row, "attempts")
            taken.odd.append((row.queue, "attempts"))
            return
        row.reserved_at, row.holder = math.ceil(self.now), Holder(tag, row.attempts)
        row.available_at = row.holder.mark
        taken.leases.append((row.queue, row.payload or b"", row.id, row.holder))

    def _next_due(self, queues: Sequence[str]) -> float | None:
        rows = [row for queue in queues for row in self.of(queue)]
        for row in rows:
            if row.reserved_at is not None and row.reserved_at > self.now + SLACK:
                row.reserved_at = math.ceil(self.now)
        ends = [row.available_at if row.reserved_at is None else row.reserved_at + RETRY_AFTER for row in rows]
        return max(min(ends) - self.now, 0.0) if ends else None

    def release(self, row: Row, delay: float, job_id: str, tally: str) -> None:
        """Behind all others, as a new row."""
        self.jobs.remove(row)
        self.jobs.append(replace(row, id=0, holder=None, reserved_at=None, available_at=self._after(delay)))
        self.tallies[job_id, tally] += 1

    def reclaim(self, queues: Sequence[str], tag: int, known: Sequence[tuple[int, Holder]]) -> int:
        unknown = [
            row
            for row in self.jobs
            if row.queue in queues and row.is_held_by(Holder(tag, row.attempts)) and (row.id, row.holder) not in known
        ]
        for row in unknown:
            row.free(self.second)
        return len(unknown)

    def fail(self, row: Row, job_id: str) -> None:
        self.jobs.remove(row)
        there = {one.identity for one in self.kept}
        names = [job_id, *(f"{job_id}-{number}" for number in range(2, len(there) + 2))]
        free = next(name for name in names if name not in there)
        self.kept.append(Kept(free, row.queue, row.payload or b"", "", self.second))
        for tally in TALLIES:
            del self.tallies[job_id, tally]

    def quarantine(self, row: Row, reason: str) -> None:
        self.jobs.remove(row)
        self.kept.append(Kept("", row.queue, row.payload or b"", reason, self.second))

    def requeue(self, kept: Kept, queue: str) -> None:
        self.kept.remove(kept)
        self.push(queue, [kept.payload], 0.0)

    def clear(self, queue: str) -> int:
        found = self.of(queue)
        self.jobs = [row for row in self.jobs if row.queue != queue]
        return len(found)

    def sizes(self, queue: str) -> tuple[int, int, int, int, bytes | None]:
        rows = self.of(queue)
        free = [row for row in rows if row.reserved_at is None]
        ready = [row for row in free if row.available_at <= self.second]
        aside = sum(bool(one.reason) for one in self.kept if one.queue == queue)
        oldest = (ready[0].payload or b"") if ready else None
        return len(ready), len(free) - len(ready), len(rows) - len(free), aside, oldest

    def _after(self, delay: float) -> int:
        """Without a delay the second that has begun; else never early."""
        return math.ceil(self.now + delay) if delay else self.second
