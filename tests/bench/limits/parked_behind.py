"""The end of one job and the start of the next, with few and with very many parked jobs behind it, in turn."""

from __future__ import annotations

import json
import statistics
import time
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, insert, select, update

from queuepool.payload.lease import NOTHING, Lease
from queuepool.payload.limits import NO_PART, PlaceAsked, holding, job_word
from queuepool.stores.contract import NewJob
from queuepool.stores.sql.tables import Tables
from tests.bench.rig import Rig
from tests.bench.words import QUICK, ratios, say

_FEW, _MANY = (10, 20_000) if QUICK else (10, 1_000_000)
#: starts of each round, of either line in turn; rounds
_STARTS, _ROUNDS = (10, 5) if QUICK else (100, 20)
#: jobs that are parked at once
_AT_ONCE = 1000
#: the first row of a database's parked jobs: above those of all that is pushed
_ROW = 10**9
_PADDING = b"x" * 280


def measure(rig: Rig) -> None:
    """With all of the many in one partition, and with ten in each."""
    for partitions in (1, _MANY // 10):
        compare(rig, partitions)


def compare(rig: Rig, partitions: int) -> None:
    """Both lines are in one store."""
    # Both before any is parked: SQLite numbers what is pushed after the highest number that there is.
    few, many = Line(rig, f"few-{partitions}", 1), Line(rig, f"many-{partitions}", partitions)
    began, before = time.monotonic(), _memory(rig)
    few.park(_FEW - 1)
    many.park(_MANY - 1)
    say(f"{_MANY:,} jobs were parked in {partitions:,} partitions, in {time.monotonic() - began:.0f} s")
    if before:
        say(f"  {(_memory(rig) - before) / _MANY:.0f} bytes each in Redis, with payloads of {len(_payload(0))}")
    rounds = [(few.go_on(), many.go_on()) for _ in range(_ROUNDS)]
    took = [one for one, _ in rounds], [other for _, other in rounds]
    for parked, seconds in zip((_FEW, _MANY), took, strict=True):
        low, middle, high = (1e6 * one for one in (min(seconds), statistics.median(seconds), max(seconds)))
        say(f"  {parked:,} parked: {middle:,.0f} us from one start to the next ({low:,.0f} to {high:,.0f})")
    ratios("so many times as long, round by round", took[1], took[0])


class Line:
    """A queue whose jobs wait for the one place of its own limit, which one of them has.

    One is parked from the beginning, and each start parks one more.
    """

    def __init__(self, rig: Rig, name: str, partitions: int) -> None:
        self._rig, self._name, self._partitions = rig, name, partitions
        self._store = rig.stores.queue
        self._tag = self._store.join()
        self._parked = 0
        self._store.push(name, [NewJob(_payload(0))])
        self._running = self._start()
        self.park(1)

    def go_on(self) -> float:
        """The median of the seconds that it takes to end one job and start the next."""
        return statistics.median(self.next() for _ in range(_STARTS))

    def next(self) -> float:
        """Seconds that it takes to end the job that runs and start the next."""
        began = time.perf_counter()
        self._store.finish(self._running, NOTHING)
        self._running = self._start()
        took = time.perf_counter() - began
        self.park(1)
        return took

    def _start(self) -> Lease:
        lease, number = self._reserved()
        entry = self._store.limits.enter(holding(lease), f"{number}", [self._asked(number)])
        assert entry.is_in, entry
        return holding(lease)

    def _reserved(self) -> tuple[Lease, int]:
        [lease] = self._store.reserve([self._name], self._tag, 1).leases
        return lease, int(json.loads(lease.receipt)["id"])

    def park(self, jobs: int) -> None:
        """So many more."""
        first, self._parked = self._parked + 1, self._parked + jobs
        for start in range(first, self._parked + 1, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, self._parked + 1))
            if self._rig.connection.url.startswith("unix"):
                self._push(numbers)
            else:
                self._copy(numbers)

    def _push(self, numbers: range) -> None:
        """As a dispatch that knows the limit does."""
        jobs = [NewJob(_payload(n), None, job_word(f"{n}"), [self._asked(n)]) for n in numbers]
        self._store.push(self._name, jobs)

    def _copy(self, numbers: range) -> None:
        """The first as a worker parks it, and the others as copies of its rows: a million would take hours."""
        client = self._rig.stores.client
        if numbers[0] == 1:
            self._store.push(self._name, [NewJob(_payload(1))])
            lease, _ = self._reserved()
            entry = self._store.limits.enter(holding(lease), "1", [self._asked(1)])
            assert entry.parked_at, entry
            assert lease.row
            self._rows = client.transaction(partial(_rows, tables=client.tables, job=lease.row.id))
            numbers = numbers[1:]
        if numbers:
            client.transaction(partial(self._insert, numbers=numbers))

    def _insert(self, connection: Connection, numbers: range) -> None:
        for table, row in self._rows:
            connection.execute(insert(table), [{**row, **self._other(row, n)} for n in numbers])
        tables, line = self._rig.stores.client.tables, {"key": self._name, "queue": self._name}
        if parts := [{**line, "part": self._part(n), "turn": n} for n in numbers if n <= self._partitions]:
            connection.execute(insert(tables.queuepool_rings), parts)
            limit = tables.queuepool_limits.c.key == self._name
            connection.execute(update(tables.queuepool_limits).where(limit).values(turn=self._partitions))

    def _other(self, row: dict[str, Any], n: int) -> dict[str, Any]:
        """What differs between the first one's row and that of another."""
        part = self._part(n)
        own = {"payload": _payload(n).decode(), "part": part, "asked": f"{self._name} {part}", "job": job_word(f"{n}")}
        return {"id": _ROW * self._tag + n, **{column: text for column, text in own.items() if column in row}}

    def _asked(self, n: int) -> PlaceAsked:
        return PlaceAsked(self._name, self._part(n), 1)

    def _part(self, n: int) -> str:
        return NO_PART if self._partitions == 1 else f"p{n % self._partitions}"


def _payload(n: int) -> bytes:
    return b'{"uuid":"%d","displayName":"noop","job":"noop","data":{"padding":"%s"},"id":"%d","attempts":0}' % (
        n, _PADDING, n,
    )  # fmt: skip


def _memory(rig: Rig) -> int:
    """Bytes that Redis uses; 0 of a database."""
    is_redis = rig.connection.url.startswith("unix")
    return int(rig.stores.client.command("INFO", "memory")["used_memory"]) if is_redis else 0


def _rows(connection: Connection, tables: Tables, job: int) -> list[tuple[Table, dict[str, Any]]]:
    """All rows of a parked job."""
    found = []
    for table in (tables.jobs, tables.queuepool_parked):
        rows = connection.execute(select(table).where(table.c.id == job)).mappings()
        found += [(table, dict(row)) for row in rows]
    return found
