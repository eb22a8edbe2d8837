"""What pools have done over a time, from the rollups in their store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from queuepool.metrics.rollup import GRAINS, Grain, Rollup, Tally
from queuepool.stores.history import Kept

#: most buckets of one answer
_MAX_BUCKETS = 850
Names = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of whole buckets: Unix seconds at which each begins."""

    grain: Grain
    buckets: range

    @classmethod
    def until(cls, now: float, seconds: float) -> Span:
        """The last ``seconds`` before now, in the finest buckets that are kept for so long."""
        grain = next((one for one in GRAINS if seconds <= one.kept), GRAINS[-1])
        count = min(max(round(seconds / grain.seconds), 1), _MAX_BUCKETS)
        last = int(now // grain.seconds) * grain.seconds
        return cls(grain, range(last - (count - 1) * grain.seconds, last + 1, grain.seconds))

    @property
    def with_the_one_before(self) -> range:
        """The buckets, and the one whose end is their beginning."""
        return range(self.buckets[0] - self.grain.seconds, self.buckets[-1] + 1, self.grain.seconds)


@dataclass(frozen=True, slots=True)
class Past:
    """What was gained in each bucket, by (queue, job), and how many texts made no sense."""

    gained: Mapping[int, Mapping[Names, Tally]]
    ignored: int

    def totals(self) -> dict[Names, Tally]:
        """Over all buckets."""
        found: dict[Names, Tally] = {}
        for bucket in self.gained.values():
            _add_to(found, bucket)
        return found


def past_of(span: Span, texts: Iterable[Kept]) -> Past:
    """From the texts of the span and of the bucket before it."""
    gained: dict[int, dict[Names, Tally]] = {bucket: {} for bucket in span.buckets}
    writers: dict[str, list[Kept]] = defaultdict(list)
    for one in sorted(texts):
        writers[one.writer].append(one)
    return Past(gained, sum(_add(span, kept, gained) for kept in writers.values()))


def _add(span: Span, kept: Iterable[Kept], gained: Mapping[int, dict[Names, Tally]]) -> int:
    """Add what one pool has gained from text to text, oldest first; returns how many made no sense."""
    before, ignored = None, 0
    for one in kept:
        try:
            now = Rollup.read(one.text)
            # A pool that began before the span, of which nothing older is known: its gain cannot be told.
            gains = _gains(now, before) if before or now.since >= span.buckets[0] else {}
        except ValueError:
            ignored += 1
            continue
        before = now
        if one.bucket in gained:
            _add_to(gained[one.bucket], gains)
    return ignored


def _add_to(bucket: dict[Names, Tally], gains: Mapping[Names, Tally]) -> None:
    for names, tally in gains.items():
        known = bucket.get(names)
        bucket[names] = known.plus(tally) if known else tally


def _gains(now: Rollup, before: Rollup | None) -> dict[Names, Tally]:
    known: Mapping[Names, Tally] = before.tallies if before else {}
    return {names: tally.minus(known.get(names, Tally())) for names, tally in now.tallies.items()}
