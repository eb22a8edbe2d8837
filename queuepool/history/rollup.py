"""A pool's counters at the end of a bucket of time, as a text in its store; and the chore that writes it.

The counters are totals since the pool's start, not gains: it does no harm if a text is written twice, or by the next
steward, and the next bucket makes up for a missed one.
"""

from __future__ import annotations

import base64
import json
import socket
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import isfinite
from operator import add, sub
from typing import Any, NamedTuple

from queuepool.board.board import Board
from queuepool.board.counts import NO_RUNS, NO_WAITS, Histogram, JobCounts, PoolCounts, QueueFacts, counts_of
from queuepool.board.meters import EXITS, LOSSES, OTHER, OUTCOMES, Shape
from queuepool.stores.values import MAX_KEPT, Values

#: bytes from which a text is compressed, and most bytes of a text that is read
_COMPRESSED_FROM, _MAX_BYTES = 1024, 1 << 20
_COMPRESSED = b"z"
#: most pairs of queue and job in a pool's text, and most queues if their names are not too long
MAX_SERIES, MAX_QUEUES = 72, 500
#: most pairs in a text that is read
_MOST_SERIES = 256
_OTHERS = (OTHER, OTHER)
#: most characters of a name, and the largest count, in a text that is read
_MAX_NAME, _MAX_COUNT = 200, 2**53
#: seconds of a minute, and minutes of an hour
_MINUTE, _HOUR = 60.0, 60
#: seconds after the end of a minute until it is written
_AFTER = 0.5
_DAY = 86400.0
#: what is counted: how attempts ended; and of all these those that their worker could not end itself, and those that
#: were cancelled while they ran
COUNTED = (*OUTCOMES, "lost", "cancelled")
#: what is counted for the pool: the exits of its workers by reason, and how often it lost its store
EVENTS = (*EXITS, "store_lost")
NO_EVENTS = (0,) * len(EVENTS)


class Grain(NamedTuple):
    """A size of buckets: their length, and how long they are kept, both in seconds."""

    name: str
    seconds: int
    kept: float


#: finest first
GRAINS = (Grain("1m", 60, 7200.0), Grain("10m", 600, 2 * _DAY), Grain("1h", 3600, 35 * _DAY))
LONGEST = GRAINS[-1].kept


class Tally(NamedTuple):
    """What became of the attempts at the jobs of one name from one queue; ``counts`` is in the order of ``COUNTED``."""

    counts: tuple[int, ...] = (0,) * len(COUNTED)
    run: Histogram = NO_RUNS
    wait: Histogram = NO_WAITS

    @classmethod
    def of(cls, counts: JobCounts) -> Tally:
        """From the pool's meters."""
        lost = sum(getattr(counts, reason) for reason in LOSSES if reason != "cancelled")
        ended = (getattr(counts, outcome) for outcome in OUTCOMES)
        return cls((*ended, lost, counts.cancelled), counts.run, counts.wait)

    @property
    def ended(self) -> int:
        """All attempts that have ended."""
        return sum(self.counts[: len(OUTCOMES)])

    def plus(self, other: Tally) -> Tally:
        """The sum of both."""
        counts = tuple(map(add, self.counts, other.counts))
        return Tally(counts, self.run.plus(other.run), self.wait.plus(other.wait))

    def minus(self, earlier: Tally) -> Tally:
        """What was counted since. Raises ``ValueError`` if a counter has fallen."""
        counts = tuple(map(sub, self.counts, earlier.counts))
        gained = Tally(counts, self.run.minus(earlier.run), self.wait.minus(earlier.wait))
        if min(*counts, *gained.run.counts, *gained.wait.counts) < 0:
            raise ValueError("a counter has fallen")
        return gained


class KeptSizes(NamedTuple):
    """A queue as it was last measured: jobs by state, and for how many seconds the next one had been ready."""

    ready: int = 0
    delayed: int = 0
    reserved: int = 0
    quarantined: int = 0
    oldest: float = 0.0

    @classmethod
    def of(cls, facts: QueueFacts) -> KeptSizes:
        """From the pool's meters."""
        return cls(facts.ready, facts.delayed, facts.reserved, facts.quarantined, round(facts.oldest, 3))

    @classmethod
    def read(cls, words: list[Any]) -> KeptSizes:
        """From a text. Raises ``ValueError``."""
        ready, delayed, reserved, quarantined, oldest = words
        return cls(
            _count_in(ready),
            _count_in(delayed),
            _count_in(reserved),
            _count_in(quarantined),
            oldest=_seconds_in(oldest),
        )

    def most(self, other: KeptSizes) -> KeptSizes:
        """The larger value of each: several pools measure one queue, but not at the same moment."""
        return KeptSizes._make(map(max, self, other))


@dataclass(frozen=True, slots=True)
class Rollup:
    """One pool's counters since its start at ``since``, by (queue, job) and of ``EVENTS``; and its queues."""

    since: float
    tallies: Mapping[tuple[str, str], Tally]
    events: tuple[int, ...] = NO_EVENTS
    queues: Mapping[str, KeptSizes] = field(default_factory=dict)
    #: how many queues have no place in the text
    left_out: int = 0

    def minus(self, earlier: Rollup) -> Rollup:
        """What was counted since, with the queues as they are now. Raises ``ValueError`` if a counter has fallen."""
        events = tuple(map(sub, self.events, earlier.events))
        if min(events) < 0:
            raise ValueError("a counter has fallen")
        known, none = earlier.tallies, Tally()
        gained = {names: tally.minus(known.get(names, none)) for names, tally in self.tallies.items()}
        return Rollup(self.since, gained, events, self.queues, self.left_out)

    def fitting(self, size: int) -> str:
        """The text in at most ``size`` bytes: if need be with fewer queues, the fullest ones."""
        text, rollup = self.text(), self
        while len(text) > size and rollup.queues:
            rollup = rollup.with_queues(len(rollup.queues) // 2)
            text = rollup.text()
        return text

    def with_queues(self, count: int) -> Rollup:
        """The rollup with only the first ``count`` queues."""
        kept = dict(list(self.queues.items())[:count])
        return replace(self, queues=kept, left_out=self.left_out + len(self.queues) - len(kept))

    def text(self) -> str:
        """The text for the store, in ASCII."""
        series = [
            [*names, *_as_before(tally), *_packed(tally.run), *_packed(tally.wait)]
            for names, tally in self.tallies.items()
        ]
        cancelled = [tally.counts[-1] for tally in self.tallies.values()]
        queues = [[queue, *sizes] for queue, sizes in self.queues.items()]
        found = {"since": self.since, "series": series, "events": self.events, "queues": queues}
        found |= {"left_out": self.left_out} if self.left_out else {}
        found |= {"cancelled": cancelled} if any(cancelled) else {}
        raw = json.dumps(found, separators=(",", ":")).encode()
        if len(raw) >= _COMPRESSED_FROM:
            raw = _COMPRESSED + base64.b64encode(zlib.compress(raw))
        return raw.decode("ascii")

    @classmethod
    def read(cls, text: bytes) -> Rollup:
        """From a text in the store, which may be anything. Raises ``ValueError``."""
        try:
            found = json.loads(_plain(text))
            series, events, queues = found["series"], tuple(map(_count_in, found["events"])), found["queues"]
            if len(series) > _MOST_SERIES or len(events) != len(EVENTS) or len(queues) > MAX_QUEUES:
                raise ValueError("too many series, events or queues")
            sizes = {_name_in(queue): KeptSizes.read(words) for queue, *words in queues}
            left_out = _count_in(found.get("left_out", 0))
            cancelled = map(_count_in, found.get("cancelled") or [0] * len(series))
            tallies = dict(_series(*pair) for pair in zip(series, cancelled, strict=True))
            return cls(_seconds_in(found["since"]), tallies, events, sizes, left_out)
        except (KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise ValueError("not a rollup") from error


class KeepHistory:
    """Keeps the pool's counters at the end of each minute.

    ``clock`` is the store's; no text is kept for longer than ``lasts`` seconds.
    """

    def __init__(self, pool: str, board: Board, values: Values, clock: Callable[[], float], lasts: float) -> None:
        self._pool = pool
        self._board = board
        self._values = values
        self._clock = clock
        self._lasts = lasts
        self._minute = 0

    def run(self, now: float) -> float:
        at = self._clock()
        minute = int((at - _AFTER) // _MINUTE)
        if self._minute and minute > self._minute:
            self.write(at - 1.0)  # into the buckets that have just ended
            if minute % _HOUR == 0:
                self._values.sweep_history()
        self._minute = minute
        return _MINUTE - (at - _AFTER) % _MINUTE

    def write(self, at: float | None = None) -> None:
        """Write the present counters into the buckets of this time, by default now."""
        at = self._clock() if at is None else at
        since = self._board.header.since
        text = rollup_of(since, counts_of(self._board)).fitting(MAX_KEPT)
        # A restarted pool counts from 0, so it is another writer, even within the same second.
        writer = f"{socket.gethostname()[:64]}:{self._pool}:{since:.3f}"
        for grain in GRAINS:
            bucket = int(at // grain.seconds) * grain.seconds
            self._values.keep_history(grain.name, bucket, writer, text, min(grain.kept, self._lasts) + grain.seconds)


def rollup_of(since: float, counts: PoolCounts) -> Rollup:
    """The meters of a pool that started at ``since``; the fullest queues come first."""
    measured = {queue: KeptSizes.of(facts) for queue, facts in counts.queues.items() if facts.measured_at}
    fullest = sorted(measured, key=lambda queue: (sum(measured[queue][:-1]), measured[queue].oldest), reverse=True)
    return Rollup(
        since,
        _tallies(counts),
        (*(counts.exits.get(reason, 0) for reason in EXITS), counts.outages),
        {queue: measured[queue] for queue in fullest},
    ).with_queues(MAX_QUEUES)


def _tallies(counts: PoolCounts) -> dict[tuple[str, str], Tally]:
    """The tallies by queue and job. If a pool has many queues, all but the first used pairs are summed up.

    Only the number of queues decides, which never changes: otherwise a series might lose its counts to another.
    """
    tallies = {names: Tally.of(one) for names, one in counts.jobs.items()}
    if Shape(0, len(counts.queues)).job_rows <= MAX_SERIES:
        return tallies
    own = [names for names in tallies if OTHER not in names][: MAX_SERIES - 1]
    found = {names: tallies.pop(names) for names in own}
    rest = reduce(Tally.plus, tallies.values(), Tally())
    return found | ({_OTHERS: rest} if rest.ended else {})


def _as_before(tally: Tally) -> tuple[int, ...]:
    """The counts as older versions read and write them: to these, cancelled attempts are lost ones."""
    *ended, lost, cancelled = tally.counts
    return *ended, lost + cancelled


def _packed(histogram: Histogram) -> list[Any]:
    """The total, and the buckets that are not empty as a list: number, count, number, count, ..."""
    return [histogram.total, [word for pair in enumerate(histogram.counts) if pair[1] for word in pair]]


def _plain(text: bytes) -> bytes:
    if text[:1] != _COMPRESSED:
        return text
    try:
        inflating = zlib.decompressobj()
        plain = inflating.decompress(base64.b64decode(text[1:], validate=True), _MAX_BYTES)
    except zlib.error as error:
        raise ValueError("not compressed") from error
    if inflating.unconsumed_tail:
        raise ValueError("too large")
    return plain


def _series(words: list[Any], cancelled: int) -> tuple[tuple[str, str], Tally]:
    queue, job, *ended, lost, run_total, run, wait_total, wait = words
    if len(ended) != len(OUTCOMES):
        raise ValueError("not the counts of a series")
    runs, waits = _histogram(run_total, run, NO_RUNS), _histogram(wait_total, wait, NO_WAITS)
    counts = (*map(_count_in, (*ended, _count_in(lost) - cancelled)), cancelled)
    return (_name_in(queue), _name_in(job)), Tally(counts, runs, waits)


def _histogram(total: Any, packed: list[Any], empty: Histogram) -> Histogram:
    counts = list(empty.counts)
    for bucket, count in zip(packed[::2], packed[1::2], strict=True):
        counts[_count_in(bucket)] = _count_in(count)
    return Histogram(tuple(counts), _seconds_in(total))


def _name_in(value: Any) -> str:
    """The name of a job or a queue."""
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise ValueError("not a name")
    return value


def _count_in(value: Any) -> int:
    """A number of things."""
    if type(value) is not int or not 0 <= value < _MAX_COUNT:
        raise ValueError("not a count")
    return value


def _seconds_in(value: Any) -> float:
    """A time, or a duration."""
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError("not a time")
    return float(value)
