"""What a pool has counted and measured, as its readers get it: metrics, history, ``top`` and alerts.

Counters belong to a slot, not to a process: they only grow while the pool lives, also when workers are recycled or
killed. ``board/meters.py`` writes and reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add, sub
from typing import NamedTuple

#: upper bounds of the buckets of run times, in seconds; one more bucket has what took longer
RUN_BOUNDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
#: the same of waits
WAIT_BOUNDS = (
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
)  # fmt: skip
#: the name that stands for all jobs, or errors, beyond those that have a row of their own
OTHER = "_other"
#: why a worker left
EXITS = ("max_jobs", "max_time", "memory", "restart", "stop", "crash", "timeout", "lease", "killed")


class Histogram(NamedTuple):
    """Observed durations: a count for each bound, one more for what took longer (not cumulative), and their sum (s)."""

    counts: tuple[int, ...]
    total: float

    @property
    def observations(self) -> int:
        """How many durations it has."""
        return sum(self.counts)

    def plus(self, other: Histogram) -> Histogram:
        """Both together; they have the same bounds."""
        return Histogram(tuple(map(add, self.counts, other.counts)), self.total + other.total)

    def minus(self, earlier: Histogram) -> Histogram:
        """What has come since ``earlier``."""
        return Histogram(tuple(map(sub, self.counts, earlier.counts)), self.total - earlier.total)

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
    """The attempts at the jobs of one name from one queue that have ended: each counts once in the first four."""

    done: int = 0
    released: int = 0
    failed: int = 0
    #: ended with no verdict of its own: interrupted by a stop, or by the death of its worker, and back in its queue
    given_back: int = 0
    #: of all these, the attempts that their worker could not end itself, by reason
    timeout: int = 0
    crash: int = 0
    memory: int = 0
    lease: int = 0
    cancelled: int = 0
    #: run times of all attempts, also of those that were killed
    run: Histogram = NO_RUNS
    #: waits of first attempts
    wait: Histogram = NO_WAITS

    @property
    def ended(self) -> int:
        """All attempts that have ended."""
        return self.done + self.released + self.failed + self.given_back


OUTCOMES = ("done", "released", "failed", "given_back")
LOSSES = ("timeout", "crash", "memory", "lease", "cancelled")


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
    paused: bool = False
    #: whether ``ready`` is only a lower bound: a database counts no further
    is_at_least: bool = False


class PoolCounts(NamedTuple):
    """All that the meters of a pool say."""

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
