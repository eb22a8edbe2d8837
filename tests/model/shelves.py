"""Each verb of the store on lists and dictionaries, without Redis and without Lua."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from tests.model.jobs import Job
from tests.support.samples import TALLIES

RETRY_AFTER = 90.0
#: odd payloads that one reserve sets aside
_MOST_ODD = 16


@dataclass(slots=True)
class Row:
    score: float
    job: Job
    tag: int = -1


class Rows(dict[bytes, Row]):
    """A sorted set: what is byte for byte the same is told apart, never merged."""

    def put(self, row: Row) -> Row:
        while row.job.raw in self:
            row.job = row.job.salted()
        self[row.job.raw] = row
        return row

    def ordered(self) -> list[tuple[bytes, float]]:
        return sorted(((raw, row.score) for raw, row in self.items()), key=lambda pair: (pair[1], pair[0]))

    def pop_due(self, now: float) -> Iterator[Job]:
        for raw, score in self.ordered():
            if score <= now:
                yield self.pop(raw).job


@dataclass(slots=True)
class Shelf:
    """One queue."""

    ready: list[Job] = field(default_factory=list)
    delayed: Rows = field(default_factory=Rows)
    reserved: Rows = field(default_factory=Rows)
    aside: list[tuple[str, str, Job]] = field(default_factory=list)

    def stage(self, now: float) -> int:
        due = [*self.delayed.pop_due(now), *self.reserved.pop_due(now)]
        self.ready += due
        return len(due)

    def first_due(self) -> float:
        rows = [*self.delayed.values(), *self.reserved.values()]
        return min((row.score for row in rows), default=math.inf)


@dataclass(slots=True)
class Taken:
    leases: list[tuple[str, bytes]] = field(default_factory=list)
    odd: list[tuple[str, str]] = field(default_factory=list)
    next_due: float = math.inf


class Shelves:
    """All queues, the failed store and the tallies."""

    def __init__(self, queues: Sequence[str], now: float) -> None:
        self.now = now
        self.of = {queue: Shelf() for queue in queues}
        self.failed: dict[str, tuple[float, Job]] = {}
        self.tallies: Counter[tuple[str, str]] = Counter()

    def push(self, queue: str, jobs: Sequence[Job], delay: float) -> None:
        shelf = self.of[queue]
        for job in jobs:
            if delay:
                shelf.delayed.put(Row(self.now + delay, job))
            else:
                shelf.ready.append(job)

    def reserve(self, queues: Sequence[str], tag: int, limit: int) -> Taken:
        taken = Taken()
        for queue in queues:
            if len(taken.leases) < limit:
                self._serve(queue, tag, limit, taken)
        taken.next_due = math.inf if taken.leases else taken.next_due
        return taken

    def _serve(self, queue: str, tag: int, limit: int, taken: Taken) -> None:
        shelf = self.of[queue]
        shelf.stage(self.now)
        while shelf.ready and len(taken.leases) < limit and len(taken.odd) < _MOST_ODD:
            job = shelf.ready.pop(0)
            if job.odd:
                shelf.aside.append((f"{self.now:.6f}", job.odd, job))
                taken.odd.append((queue, job.odd))
            else:
                row = shelf.reserved.put(Row(self._lease_end(tag, len(taken.leases) + 1), job.begun(), tag))
                taken.leases.append((queue, row.job.raw))
        if not taken.leases:
            taken.next_due = min(taken.next_due, shelf.first_due())

    def _lease_end(self, tag: int, nth: int = 1) -> float:
        return (math.floor((self.now + RETRY_AFTER) * 16) + nth) / 16 + tag / (16 * 131_072)

    def end(self, queue: str, receipt: bytes, tag: int) -> Row | None:
        """Taken from the reserved set, if it is there and this worker's."""
        reserved = self.of[queue].reserved
        return reserved.pop(receipt) if receipt in reserved and reserved[receipt].tag == tag else None

    def finish(self, queue: str, receipt: bytes, tag: int, outcome: tuple[str, Job]) -> bool:
        row = self.end(queue, receipt, tag)
        if row:
            self.push(outcome[0], [outcome[1]], 0.0)
        return row is not None

    def release(self, queue: str, receipt: bytes, tag: int, delay: float, job_id: str, tally: str) -> bool:
        row = self.end(queue, receipt, tag)
        if row:
            self.push(queue, [row.job], delay)
            self.tallies[job_id, tally] += 1
        return row is not None

    def give_back(self, queue: str, proofs: Sequence[tuple[bytes, int]]) -> list[bool]:
        rows = [self.end(queue, receipt, tag) for receipt, tag in proofs]
        self.of[queue].ready[:0] = [row.job.unbegun() for row in rows if row]
        return [row is not None for row in rows]

    def reclaim(self, queue: str, tag: int, since: float, known: Sequence[bytes]) -> int:
        shelf, first = self.of[queue], self.now - since + RETRY_AFTER - 1
        ordered = [raw for raw, score in shelf.reserved.ordered() if score >= first and raw not in known]
        return sum(self.give_back(queue, [(raw, tag) for raw in ordered]))

    def renew(self, queue: str, receipt: bytes, tag: int) -> bool:
        row = self.of[queue].reserved.get(receipt)
        ours = row is not None and row.tag == tag
        if row and ours:
            row.score = self._lease_end(tag)
        return ours

    def fail(self, queue: str, receipt: bytes, tag: int, job_id: str) -> bool:
        row = self.end(queue, receipt, tag)
        if row:
            self.failed[self._free_name(job_id)] = (self.now, row.job)
            for tally in TALLIES:
                del self.tallies[job_id, tally]
        return row is not None

    def _free_name(self, job_id: str) -> str:
        """Of two failed jobs with one id both are kept."""
        others = (f"{job_id}-{number}" for number in count(2))
        return next(name for name in chain([job_id], others) if name not in self.failed)

    def quarantine(self, queue: str, receipt: bytes, tag: int, reason: str) -> bool:
        row = self.end(queue, receipt, tag)
        if row:
            self.of[queue].aside.append((f"{self.now:.6f}", reason, row.job.unbegun()))
        return row is not None

    def stage(self, queues: Sequence[str]) -> tuple[int, float]:
        moved = sum(self.of[queue].stage(self.now) for queue in queues)
        return moved, min(self.of[queue].first_due() for queue in queues)
