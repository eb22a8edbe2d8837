"""What a pool keeps of its counters at the end of a bucket of time, as a text in its store.

The counters are totals since the pool's start, not gains: a text that is written twice, or by the next steward, is the
same, and a bucket that was missed is in the next.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from operator import add, sub
from typing import Any, NamedTuple

from queuepool.board.counts import LOSSES, NO_RUNS, NO_WAITS, OUTCOMES, Histogram, JobCounts, PoolCounts

#: bytes from which on a text is compressed, and most bytes of one that is read
_COMPRESSED_FROM, _MAX_BYTES = 1024, 1 << 20
_COMPRESSED = b"z"
_MAX_NAME, _MAX_SERIES, _MAX_COUNT = 200, 256, 2**53
_DAY = 86400.0


class Grain(NamedTuple):
    """A length of buckets, and for how long they are kept; both in seconds."""

    name: str
    seconds: int
    kept: float


#: finest first
GRAINS = (Grain("1m", 60, 7200.0), Grain("10m", 600, 2 * _DAY), Grain("1h", 3600, 35 * _DAY))
LONGEST = GRAINS[-1].kept


#: what is counted: how attempts ended, and of all these, those that their worker could not end
COUNTED = (*OUTCOMES, "lost")


class Tally(NamedTuple):
    """What has become of the attempts at the jobs of one name from one queue; ``counts`` are those of ``COUNTED``."""

    counts: tuple[int, ...] = (0,) * len(COUNTED)
    run: Histogram = NO_RUNS
    wait: Histogram = NO_WAITS

    @classmethod
    def of(cls, counts: JobCounts) -> Tally:
        """From the pool's meters."""
        lost = sum(getattr(counts, reason) for reason in LOSSES)
        return cls((*(getattr(counts, outcome) for outcome in OUTCOMES), lost), counts.run, counts.wait)

    @property
    def ended(self) -> int:
        """All attempts that have ended."""
        return sum(self.counts[: len(OUTCOMES)])

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        counts = tuple(map(add, self.counts, other.counts))
        return Tally(counts, self.run.plus(other.run), self.wait.plus(other.wait))

    def minus(self, earlier: Tally) -> Tally:
        """What has come since. Raises ``ValueError`` if that is less than nothing."""
        counts = tuple(map(sub, self.counts, earlier.counts))
        gained = Tally(counts, self.run.minus(earlier.run), self.wait.minus(earlier.wait))
        if min(*counts, *gained.run.counts, *gained.wait.counts) < 0:
            raise ValueError("a counter that has fallen")
        return gained


@dataclass(frozen=True, slots=True)
class Rollup:
    """One pool's counters since its start at ``since``, by (queue, job)."""

    since: float
    tallies: Mapping[tuple[str, str], Tally]

    def text(self) -> str:
        """As the store keeps it, in ASCII."""
        series = [
            [*names, *tally.counts, *_packed(tally.run), *_packed(tally.wait)] for names, tally in self.tallies.items()
        ]
        raw = json.dumps({"since": self.since, "series": series}, separators=(",", ":")).encode()
        if len(raw) >= _COMPRESSED_FROM:
            raw = _COMPRESSED + base64.b64encode(zlib.compress(raw))
        return raw.decode("ascii")

    @classmethod
    def read(cls, text: bytes) -> Rollup:
        """From a store, where anything may be. Raises ``ValueError``."""
        try:
            found = json.loads(_plain(text))
            series = found["series"]
            if len(series) > _MAX_SERIES:
                raise ValueError("too many series")
            return cls(_time(found["since"]), dict(map(_series, series)))
        except (KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise ValueError("not a rollup") from error


def rollup_of(since: float, counts: PoolCounts) -> Rollup:
    """What the meters of a pool that started at ``since`` say."""
    return Rollup(since, {names: Tally.of(one) for names, one in counts.jobs.items()})


def _packed(histogram: Histogram) -> list[Any]:
    """The total, and the buckets that are not empty: number, count, number, count ..."""
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


def _series(words: list[Any]) -> tuple[tuple[str, str], Tally]:
    queue, job, *counts, run_total, run, wait_total, wait = words
    if len(counts) != len(COUNTED):
        raise ValueError("not the counts of a series")
    runs, waits = _histogram(run_total, run, NO_RUNS), _histogram(wait_total, wait, NO_WAITS)
    return (_name(queue), _name(job)), Tally(tuple(map(_count, counts)), runs, waits)


def _histogram(total: Any, packed: list[Any], empty: Histogram) -> Histogram:
    counts = list(empty.counts)
    for bucket, count in zip(packed[::2], packed[1::2], strict=True):
        counts[_count(bucket)] = _count(count)
    return Histogram(tuple(counts), _time(total))


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise ValueError("not a name")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MAX_COUNT:
        raise ValueError("not a count")
    return value


def _time(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError("not a time")
    return float(value)
