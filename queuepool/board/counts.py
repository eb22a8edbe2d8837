"""What a pool has counted and measured, as its readers get it: metrics, history, ``top`` and alerts.

Counters belong to a slot, not to a process: they only grow while the pool lives, also when workers are recycled or
killed. They are the sums of the meters of all slots; a value that cannot be a count, or a time, counts as 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, isfinite
from operator import add, sub
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.meters import EXITS, OTHER, RUN_BOUNDS, WAIT_BOUNDS, Shape
from queuepool.board.paused_queues import paused_in
from queuepool.board.record import SharedFile, as_count, as_counts

T = TypeVar("T")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS = (OTHER, OTHER)


class Histogram(NamedTuple):
    """Observed durations: a count for each bound, one more for what took longer (not cumulative), and their sum (s)."""

    counts: tuple[int, ...]
    total: float

    @property
    def observations(self) -> int:
        """The number of observations."""
        return sum(self.counts)

    def plus(self, other: Histogram) -> Histogram:
        """The sum of both, which have the same bounds."""
        return Histogram(tuple(map(add, self.counts, other.counts)), self.total + other.total)

    def minus(self, earlier: Histogram) -> Histogram:
        """The observations made since ``earlier``."""
        return Histogram(tuple(map(sub, self.counts, earlier.counts)), self.total - earlier.total)

    def since(self, earlier: Histogram) -> Histogram:
        """As ``minus``, but never below 0."""
        counts, total = self.minus(earlier)
        return Histogram(tuple(max(count, 0) for count in counts), max(total, 0.0))

    def quantile(self, share: float, bounds: Sequence[float]) -> float:
        """The value below which a ``share`` (0 to 1) of the observations lies, in seconds; 0.0 if there are none.

        Linear within a bucket, so it is wrong by at most the bucket's width; beyond the last bound, that bound.
        """
        wanted, lower = share * self.observations, 0.0
        for count, upper in zip(self.counts, bounds, strict=False):
            if count and wanted <= count:
                return lower + (upper - lower) * wanted / count
            wanted, lower = wanted - count, upper
        return bounds[-1] if self.observations else 0.0


NO_RUNS = Histogram((0,) * (len(RUN_BOUNDS) + 1), 0.0)
NO_WAITS = Histogram((0,) * (len(WAIT_BOUNDS) + 1), 0.0)


class JobCounts(NamedTuple):
    """The attempts at the jobs of one name from one queue that have ended: each is in exactly one of the first four."""

    done: int = 0
    released: int = 0
    failed: int = 0
    #: ended without a verdict: interrupted by a stop or the death of its worker, and back in its queue
    given_back: int = 0
    #: those of all these that their worker could not end itself, by reason
    timeout: int = 0
    crash: int = 0
    memory: int = 0
    lease: int = 0
    cancelled: int = 0
    #: workers that left at their memory limit and had grown most in runs of this job
    outgrown: int = 0
    #: run times of all attempts, also of those that were killed
    run: Histogram = NO_RUNS
    #: waits of first attempts
    wait: Histogram = NO_WAITS

    @property
    def ended(self) -> int:
        """All attempts that have ended."""
        return self.done + self.released + self.failed + self.given_back

    def since(self, earlier: JobCounts | None) -> JobCounts:
        """What has been counted since then; ``None``: since the pool began.

        A number that is lower than before counts as nothing: a job has written over the meters, and a sum of such
        differences would count the same attempts twice.
        """
        if earlier is None:
            return self
        gained = {name: max(getattr(self, name) - getattr(earlier, name), 0) for name in self._fields[:-2]}
        return JobCounts(**gained, run=self.run.since(earlier.run), wait=self.wait.since(earlier.wait))


class QueueFacts(NamedTuple):
    """One queue as the steward last measured it. Sizes are jobs, ages are seconds, by the store's clock."""

    ready: int = 0
    delayed: int = 0
    reserved: int = 0
    quarantined: int = 0
    #: for how long the next job has been ready; 0.0 = none is
    oldest: float = 0.0
    #: for how long the first delayed job has been due and not made ready; 0.0 = none is
    overdue: float = 0.0
    #: when it was measured, in Unix seconds by this host's clock; 0.0 = never
    measured_at: float = 0.0
    #: jobs that wait for places of limits, and are in no queue
    parked: int = 0
    paused: bool = False
    #: whether ``ready`` is only a lower bound: a database counts no further
    is_at_least: bool = False


class FlowFacts(NamedTuple):
    """The flows of the pool's store that are under way; times in Unix seconds, 0.0 = never, or none."""

    under_way: int = 0
    #: members of them that have not begun
    waiting: int = 0
    #: when the oldest of them was created
    since: float = 0.0
    measured_at: float = 0.0
    #: the flows that processes of this pool have ended, by what these have become
    ended: Mapping[str, int] = {}


class LimitFacts(NamedTuple):
    """One limit as a steward last measured it; times in seconds."""

    number: int = 0
    held: int = 0
    parked: int = 0
    #: whether ``parked`` is only a lower bound
    is_at_least: bool = False
    #: for how long the job that waits the longest has been ready; 0.0 = none waits
    oldest: float = 0.0
    #: for how long a place has been free though jobs wait for it; 0.0 = none is
    unused: float = 0.0


class PoolCounts(NamedTuple):
    """What the meters of a pool hold."""

    #: by (queue, job)
    jobs: Mapping[tuple[str, str], JobCounts] = {}
    #: exceptions by (job, class)
    errors: Mapping[tuple[str, str], int] = {}
    #: workers that have left, by reason
    exits: Mapping[str, int] = {}
    queues: Mapping[str, QueueFacts] = {}
    #: records of failed jobs that the store keeps
    failed_jobs: int = 0
    #: how often the store has been lost since the pool started
    outages: int = 0
    flows: FlowFacts = FlowFacts()
    #: those at which most jobs wait
    limits: Mapping[str, LimitFacts] = {}


def file_of(board: Path) -> Path:
    """The file with the meters of the board at this path."""
    return board.with_name(f"{board.name}.meters")


def counts_of(board: Board) -> PoolCounts:
    """What this board's pool has counted and measured; what cannot be read is empty. Never raises.

    In a process of the pool these are the current values, elsewhere those of about a second ago.
    """
    return _read(board, partial(_counts, board)) or PoolCounts()


def parked_in(board: Board) -> int:
    """How many jobs of the pool's queues wait for places of limits, as ``counts_of`` has it."""
    return _read(board, _parked) or 0


def _parked(memory: Any, shape: Shape) -> int:
    pool = memory[0 : shape.area_at(0)]
    used = memoryview(pool[: layout.FIRST_QUEUE * layout.WORD]).cast("q")[layout.QUEUES]
    return sum(_queue(raw)[1].parked for raw in _rows(pool, min(as_count(used), shape.queues)))


def _read(board: Board, read: Callable[[Any, Shape], T]) -> T | None:
    if board.meters:
        return read(board.meters, board.meters.shape) if board.meters.is_published else None
    try:
        fd = os.open(file_of(board.path), _FLAGS)
    except OSError:
        return None
    try:
        file = SharedFile(fd, os.fstat(fd).st_size)
        shape = shape_of(file)
        return read(file, shape) if shape and shape.capacity == len(board.slots) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def shape_of(file: SharedFile) -> Shape | None:
    """The shape of these meters, if the file is complete, and of this version. Raises ``OSError``."""
    raw = file[0 : layout.FIRST_QUEUE * layout.WORD].ljust(layout.FIRST_QUEUE * layout.WORD, b"\0")
    head = memoryview(raw).cast("q")
    shape = Shape(head[layout.CAPACITY], head[layout.ROOM])
    is_ours = head[layout.POOL_MAGIC] == layout.MAGIC and 0 <= shape.queues <= layout.MAX_QUEUES
    return shape if is_ours and shape.size == len(file) == os.fstat(file.fd).st_size else None


def parts_in_use(memory: Any, shape: Shape, index: int) -> Iterator[tuple[int, bytes]]:
    """The first byte and the content of each part of a slot's area: its head, its rows of jobs, its rows of errors.

    The head is read first: it has the numbers of rows, which are written after the rows. Nothing if no worker has had
    the slot, or if its head is nonsense.
    """
    first = shape.area_at(index)
    raw = memory[first : first + layout.HEAD * layout.WORD]
    head = memoryview(raw).cast("q")
    jobs, errors = head[layout.JOB_ROWS], head[layout.ERROR_ROWS]
    if 0 < jobs <= shape.job_rows and 0 <= errors <= layout.ROWS:
        yield first, raw
        for word, words in ((layout.FIRST_JOB, jobs * layout.JOB_ROW), (layout.FIRST_ERROR, errors * layout.ERROR_ROW)):
            place = first + word * layout.WORD
            yield place, memory[place : place + words * layout.WORD]


def _counts(board: Board, memory: Any, shape: Shape) -> PoolCounts:
    sums = _Sums(shape)
    for index in range(len(board.slots)):
        parts = [raw for _, raw in parts_in_use(memory, shape, index)]
        if parts:
            sums.add(*parts)
    return sums.counts(memory[0 : shape.area_at(0)], board.header.paused)


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
    """Rows by a pair of names. The names used first keep their own rows, so a sum never loses one."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}

    def add(self, names: tuple[str, str], row: _Row) -> None:
        known = self._rows.get(names)
        self._rows[names] = known.plus(row) if known else row

    def bounded(self, most: int, most_others: int = 0) -> dict[tuple[str, str], _Row]:
        """At most so many rows, and sums of the others: by first name while those are few, else one of all."""
        ordered = sorted(self._rows.items(), key=lambda item: (item[1].first_used, item[0]))
        kept, others = dict([item for item in ordered if item[0][1] != OTHER][:most]), _Table()
        for (first, second), row in ordered:
            if (first, second) not in kept:
                place = first, OTHER
                others.add(place if place in others._rows or len(others._rows) < most_others else _OTHERS, row)
        return kept | {names: row for names, row in others._rows.items() if any(row.counts)}


class _Sums:
    """Adds up the slots, one after another."""

    def __init__(self, shape: layout.Shape) -> None:
        self._shape = shape
        self._jobs, self._errors = _Table(), _Table()
        self._exits = [0] * len(EXITS)
        self._flow_ends = [0] * len(layout.FLOW_ENDS)

    def add(self, head: bytes, jobs: bytes, errors: bytes) -> None:
        """Add one slot: its head, and the rows of jobs and of errors that it uses."""
        exits = layout.EXITS_STRUCT.unpack_from(head, layout.FIRST_EXIT * layout.WORD)
        self._exits = list(map(add, self._exits, map(as_count, exits)))
        self._add_flow_ends(head)
        _add_rows(self._jobs, jobs, layout.JOBS)
        _add_rows(self._errors, errors, layout.ERRORS)

    def _add_flow_ends(self, words: bytes) -> None:
        ends = layout.FLOW_ENDS_STRUCT.unpack_from(words, layout.FIRST_FLOW_END * layout.WORD)
        self._flow_ends = list(map(add, self._flow_ends, map(as_count, ends)))

    def counts(self, pool: bytes, paused: str) -> PoolCounts:
        """The sums, with what the steward has written of the ``pool``; ``paused`` is as on the board."""
        numbers, shape = memoryview(pool).cast("q"), self._shape
        queues = dict(map(_queue, _rows(pool, min(as_count(numbers[layout.QUEUES]), shape.queues))))
        names = frozenset(paused_in(paused, lambda: [*queues]))
        self._add_flow_ends(pool)
        under_way, waiting, since, measured_at = as_counts(numbers[layout.FLOWS : layout.FLOWS_MEASURED + 1])
        ended = dict(zip(layout.FLOW_ENDS, self._flow_ends, strict=True))
        jobs = self._jobs.bounded(shape.own_rows - 1, shape.shared_rows)
        return PoolCounts(
            jobs={names: _job_counts(row) for names, row in jobs.items()},
            errors={names: row.counts[0] for names, row in self._errors.bounded(layout.ROWS - 1).items()},
            exits=dict(zip(EXITS, self._exits, strict=True)),
            queues={name: facts._replace(paused=name in names) for name, facts in queues.items()},
            failed_jobs=as_count(numbers[layout.FAILED_JOBS]),
            outages=as_count(numbers[layout.OUTAGES]),
            flows=FlowFacts(under_way, waiting, since, measured_at, ended),
            limits=dict(_limits(pool, min(as_count(numbers[layout.LIMITS]), layout.MOST_LIMITS))),
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
    others, waits, cells = row.counts[:first_wait], row.counts[first_wait:first_way], row.counts[first_way:]
    ways = [cells[first : first + layout.RUN_BUCKETS] for first in range(0, len(cells), layout.RUN_BUCKETS)]
    own, lost = [sum(way) for way in ways[: layout.LOST]], [0, *(sum(way) for way in ways[layout.LOST :])]
    run, wait = row.totals
    runs = Histogram(tuple(map(sum, zip(*ways, strict=True))), run)
    return JobCounts._make([*map(add, own, lost), *others, runs, Histogram(tuple(waits), wait)])


def _rows(pool: bytes, count: int) -> list[bytes]:
    first, length = layout.FIRST_QUEUE * layout.WORD, layout.QUEUE_ROW * layout.WORD
    return [pool[first + length * number :][:length] for number in range(count)]


def _limits(pool: bytes, count: int) -> Iterator[tuple[str, LimitFacts]]:
    for row in range(count):
        place = (layout.FIRST_LIMIT + row * layout.LIMIT_ROW) * layout.WORD
        *counts, oldest, unused = layout.LIMIT_STRUCT.unpack_from(pool, place)
        number, held, parked, is_at_least = map(as_count, counts)
        name = layout.text_in(pool, place + layout.LIMIT_NUMBERS * layout.WORD, layout.LIMIT_TEXT)
        yield name, LimitFacts(number, held, parked, bool(is_at_least), _time(oldest), _time(unused))


def _queue(raw: bytes) -> tuple[str, QueueFacts]:
    *counts, oldest, overdue, measured_at = layout.QUEUE_STRUCT.unpack_from(raw)
    ready, delayed, reserved, quarantined, parked, is_at_least = map(as_count, counts)
    facts = QueueFacts(ready, delayed, reserved, quarantined, _time(oldest), _time(overdue), _time(measured_at))
    name = layout.text_in(raw, layout.QUEUE_NUMBERS * layout.WORD, layout.QUEUE_TEXT)
    return name, facts._replace(parked=parked, is_at_least=bool(is_at_least))
