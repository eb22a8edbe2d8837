"""What pools did over a span of time, read from the rollups in their store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import add

from queuepool.history.rollup import EVENTS, GRAINS, NO_EVENTS, Grain, KeptSizes, Rollup, Tally
from queuepool.stores.values import Kept

#: most buckets in one answer
_MAX_BUCKETS = 850
Names = tuple[str, str]


@dataclass(frozen=True, slots=True)
class HistorySpan:
    """A range of whole buckets, each named by its beginning in Unix seconds."""

    grain: Grain
    buckets: range
    #: when it was asked for, in Unix seconds; the last bucket is not over yet
    now: float

    @classmethod
    def until(cls, now: float, seconds: float) -> HistorySpan:
        """The last ``seconds`` before now, in the finest buckets that are kept for that long."""
        grain = next((one for one in GRAINS if seconds <= one.kept), GRAINS[-1])
        count = min(max(round(seconds / grain.seconds), 1), _MAX_BUCKETS)
        last = int(now // grain.seconds) * grain.seconds
        return cls(grain, range(last - (count - 1) * grain.seconds, last + 1, grain.seconds), now)

    @property
    def with_the_one_before(self) -> range:
        """The buckets and the one before them."""
        return range(self.buckets[0] - self.grain.seconds, self.buckets[-1] + 1, self.grain.seconds)


@dataclass(frozen=True, slots=True)
class Past:
    """What was gained in each bucket, by (queue, job), and how many texts could not be read."""

    gained: Mapping[int, Mapping[Names, Tally]]
    ignored: int
    #: the gains of ``EVENTS`` in each bucket, for all pools together
    events: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    #: the queues as they were at the end of each bucket
    queues: Mapping[int, Mapping[str, KeptSizes]] = field(default_factory=dict)
    #: how many queues had no place in their pool's text: the most of any pool
    left_out: int = 0
    #: when the first of the pools began, in Unix seconds
    since: float = 0.0

    def minutes(self, begin: float, end: float) -> float:
        """For how many minutes between these Unix seconds there was a pool; at least 1, for rates per minute."""
        return max(end - max(begin, self.since), 60.0) / 60.0

    def totals(self) -> dict[Names, Tally]:
        """The gains of all buckets together."""
        found: dict[Names, Tally] = {}
        for bucket in self.gained.values():
            _add_to(found, bucket)
        return found

    def event_totals(self) -> dict[str, int]:
        """The events of all buckets together, without those that did not happen."""
        totals = zip(EVENTS, map(sum, zip(NO_EVENTS, *self.events.values(), strict=True)), strict=True)
        return {event: count for event, count in totals if count}

    def by_queue(self) -> dict[str, list[KeptSizes]]:
        """The sizes of each queue, oldest first."""
        found: dict[str, list[KeptSizes]] = defaultdict(list)
        for bucket in self.queues.values():
            for queue, sizes in bucket.items():
                found[queue].append(sizes)
        return found


def past_of(span: HistorySpan, texts: Iterable[Kept]) -> Past:
    """The past, from the texts of the span and of the bucket before it."""
    gathered = _Gathered(span)
    writers: dict[str, list[Kept]] = defaultdict(list)
    for one in sorted(texts):
        writers[one.writer].append(one)
    for kept in writers.values():
        gathered.add(kept)
    since = min(gathered.begun, default=0.0)
    return Past(gathered.jobs, gathered.ignored, gathered.events, gathered.queues, gathered.left_out, since)


class _Gathered:
    """Adds pool after pool to the buckets of a span."""

    def __init__(self, span: HistorySpan) -> None:
        self._first = span.buckets[0]
        self.jobs: dict[int, dict[Names, Tally]] = {bucket: {} for bucket in span.buckets}
        self.events = dict.fromkeys(span.buckets, NO_EVENTS)
        self.queues: dict[int, dict[str, KeptSizes]] = {bucket: {} for bucket in span.buckets}
        self.ignored = self.left_out = 0
        #: when each pool began, in Unix seconds
        self.begun: list[float] = []

    def add(self, kept: Iterable[Kept]) -> None:
        """Add what one pool gained from text to text, oldest first; count texts that cannot be read."""
        before = None
        for one in kept:
            try:
                now = Rollup.read(one.text)
                gained = self._gained(now, before)
            except ValueError:
                self.ignored += 1
                continue
            before = now
            self.begun.append(now.since)
            if one.bucket in self.jobs:
                self._add(one.bucket, gained)

    def _gained(self, now: Rollup, before: Rollup | None) -> Rollup:
        # The pool began before the span and has no older text, so its gain is unknown.
        if before is None and now.since < self._first:
            return Rollup(now.since, {}, queues=now.queues, left_out=now.left_out)
        return now.minus(before or Rollup(now.since, {}))

    def _add(self, bucket: int, gained: Rollup) -> None:
        _add_to(self.jobs[bucket], gained.tallies)
        self.events[bucket] = tuple(map(add, self.events[bucket], gained.events))
        self.left_out = max(self.left_out, gained.left_out)
        known = self.queues[bucket]
        for queue, sizes in gained.queues.items():
            known[queue] = sizes.most(known[queue]) if queue in known else sizes


def _add_to(bucket: dict[Names, Tally], gains: Mapping[Names, Tally]) -> None:
    for names, tally in gains.items():
        known = bucket.get(names)
        bucket[names] = known.plus(tally) if known else tally
