"""The sums of the meters of all slots. A value that cannot be a count, or a time, counts as 0."""

from __future__ import annotations

from math import inf, isfinite
from operator import add
from typing import NamedTuple

from queuepool.board import meter_layout as layout
from queuepool.board.counts import EXITS, OTHER, Histogram, JobCounts, PoolCounts, QueueFacts
from queuepool.board.paused_queues import paused_in
from queuepool.board.record import as_count, as_counts

_OTHERS = (OTHER, OTHER)


class _Row(NamedTuple):
    """The numbers under one pair of names: when these were first used, totals in seconds, counts."""

    first_used: float
    totals: list[float]
    counts: list[int]

    def plus(self, other: _Row) -> _Row:
        return _Row(
            min(self.first_used, other.first_used),
            list(map(add, self.totals, other.totals)),
            list(map(add, self.counts, other.counts)),
        )


class _Table:
    """Rows by a pair of names. The names used first keep a row of their own, so those of a sum never change."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}

    def add(self, names: tuple[str, str], row: _Row) -> None:
        known = self._rows.get(names)
        self._rows[names] = known.plus(row) if known else row

    def bounded(self, most: int, most_others: int = 0) -> dict[tuple[str, str], _Row]:
        """At most so many, and the others: by their first name as long as these are few, else all together."""
        ordered = sorted(self._rows.items(), key=lambda item: (item[1].first_used, item[0]))
        kept, others = dict([item for item in ordered if item[0][1] != OTHER][:most]), _Table()
        for (first, second), row in ordered:
            if (first, second) not in kept:
                place = first, OTHER
                others.add(place if place in others._rows or len(others._rows) < most_others else _OTHERS, row)
        return kept | {names: row for names, row in others._rows.items() if any(row.counts)}


class Sums:
    """Adds slot after slot."""

    def __init__(self, shape: layout.Shape) -> None:
        self._shape = shape
        self._jobs, self._errors = _Table(), _Table()
        self._exits = [0] * len(EXITS)

    def add(self, head: bytes, jobs: bytes, errors: bytes) -> None:
        """Add one slot: its head, and the rows of jobs and of errors that it uses."""
        exits = layout.EXITS_STRUCT.unpack_from(head, layout.FIRST_EXIT * layout.WORD)
        self._exits = list(map(add, self._exits, map(as_count, exits)))
        _add_rows(self._jobs, jobs, layout.JOBS)
        _add_rows(self._errors, errors, layout.ERRORS)

    def counts(self, pool: bytes, paused: str) -> PoolCounts:
        """All of it, with what the steward has written of the ``pool``; ``paused`` is as on the board."""
        numbers, shape = memoryview(pool).cast("q"), self._shape
        queues = dict(map(_queue, _rows(pool, min(as_count(numbers[layout.QUEUES]), shape.queues))))
        names = frozenset(paused_in(paused, lambda: [*queues]))
        jobs = self._jobs.bounded(shape.own_rows - 1, shape.shared_rows)
        return PoolCounts(
            jobs={names: _job_counts(row) for names, row in jobs.items()},
            errors={names: row.counts[0] for names, row in self._errors.bounded(layout.ROWS - 1).items()},
            exits=dict(zip(EXITS, self._exits, strict=True)),
            queues={name: facts._replace(paused=name in names) for name, facts in queues.items()},
            failed_jobs=as_count(numbers[layout.FAILED_JOBS]),
            outages=as_count(numbers[layout.OUTAGES]),
        )


def _add_rows(table: _Table, raw: bytes, kind: layout.Rows) -> None:
    for number, place in enumerate(range(0, len(raw), kind.words * layout.WORD)):
        found = kind.numbers.unpack_from(raw, place)
        (first_used, *totals), counts = map(_time, found[: kind.times]), as_counts(found[kind.times :])
        text, (first, second) = place + kind.numbers.size, kind.texts
        names = layout.text_in(raw, text, first), layout.text_in(raw, text + first, second)
        table.add(names if number else _OTHERS, _Row(first_used or inf, totals, counts))


def _time(value: float) -> float:
    return value if isfinite(value) and value >= 0.0 else 0.0


def _job_counts(row: _Row) -> JobCounts:
    first_wait, first_way = layout.FIRST_WAIT - layout.FIRST_LOSS, layout.FIRST_WAY - layout.FIRST_LOSS
    losses, waits, cells = row.counts[:first_wait], row.counts[first_wait:first_way], row.counts[first_way:]
    ways = [cells[first : first + layout.RUN_BUCKETS] for first in range(0, len(cells), layout.RUN_BUCKETS)]
    own, lost = [sum(way) for way in ways[: layout.LOST]], [0, *(sum(way) for way in ways[layout.LOST :])]
    run, wait = row.totals
    runs = Histogram(tuple(map(sum, zip(*ways, strict=True))), run)
    return JobCounts._make([*map(add, own, lost), *losses, runs, Histogram(tuple(waits), wait)])


def _rows(pool: bytes, count: int) -> list[bytes]:
    first, length = layout.FIRST_QUEUE * layout.WORD, layout.QUEUE_ROW * layout.WORD
    return [pool[first + length * number :][:length] for number in range(count)]


def _queue(raw: bytes) -> tuple[str, QueueFacts]:
    *counts, oldest, overdue, measured_at = layout.QUEUE_STRUCT.unpack_from(raw)
    ready, delayed, reserved, quarantined, is_at_least = map(as_count, counts)
    facts = QueueFacts(ready, delayed, reserved, quarantined, _time(oldest), _time(overdue), _time(measured_at))
    name = layout.text_in(raw, layout.QUEUE_NUMBERS * layout.WORD, layout.QUEUE_TEXT)
    return name, facts._replace(is_at_least=bool(is_at_least))
