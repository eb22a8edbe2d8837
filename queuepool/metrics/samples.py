"""A pool's facts and counts as samples of the metrics in ``table.py``, and those in Prometheus' text format 0.0.4.

Reads no clock, no file and no store. ``prometheus_client`` is not used: it takes twice as long for the text, and 90 ms
to be imported; our tests check the text with it.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from math import isfinite, isnan
from typing import NamedTuple

from queuepool import __version__
from queuepool.board.counts import NO_WAITS, Histogram, PoolCounts, QueueFacts
from queuepool.board.health import LATE_AFTER
from queuepool.board.meters import EXITS, LOSSES, OUTCOMES, RUN_BOUNDS, WAIT_BOUNDS
from queuepool.metrics.facts import PoolFacts, not_ready
from queuepool.metrics.table import GAUGE, INFO, METRICS, QUEUE_STATES, Metric

TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: the last label of each of a histogram's buckets, and what follows it
_BUCKETS: Mapping[str, tuple[str, ...]] = {
    name: tuple(f'le="{bound}"}} ' for bound in (*bounds, "+Inf"))
    for name, bounds in (("queuepool_job_run_seconds", RUN_BOUNDS), ("queuepool_job_wait_seconds", WAIT_BOUNDS))
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """One value of a metric; ``labels`` are the values of its labels, in the table's order."""

    metric: str
    labels: tuple[str, ...]
    value: float | Histogram


def of_program() -> Iterator[Sample]:
    """What is the same for all pools."""
    yield Sample("queuepool_build_info", (__version__, platform.python_version()), 1.0)


def of_stopped(name: str) -> Iterator[Sample]:
    """What there is to say about a pool that does not run."""
    yield Sample("queuepool_up", (name,), 0.0)
    yield Sample("queuepool_ready", (name,), 0.0)


def of_pool(facts: PoolFacts, counts: PoolCounts) -> Iterator[Sample]:
    """All samples of one pool that runs."""
    pool, store = (facts.name,), (facts.name, facts.connection)
    yield Sample("queuepool_up", pool, float(facts.beat_age < LATE_AFTER))
    yield Sample("queuepool_ready", pool, float(not not_ready(facts)))
    yield Sample("queuepool_boot_problem", pool, float(facts.has_boot_problem))
    if facts.beat_age != float("inf"):
        yield Sample("queuepool_master_beat_timestamp_seconds", pool, facts.read_at - facts.beat_age)
    yield Sample("queuepool_pool_start_timestamp_seconds", pool, facts.started_at)
    yield Sample("queuepool_generation", pool, facts.generation)
    yield Sample("queuepool_maintenance", pool, float(facts.maintenance))
    yield Sample("queuepool_store_up", store, float(not facts.store_lost_at))
    yield Sample("queuepool_store_full", store, float(bool(facts.store_full_at)))
    yield Sample("queuepool_store_outages_total", store, counts.outages)
    yield Sample("queuepool_failed_jobs", store, counts.failed_jobs)
    for alert in facts.alerts:
        yield Sample("queuepool_alert", (facts.name, *alert), 1.0)
    yield from _of_workers(facts, counts)
    yield from _of_jobs(facts.name, counts)
    for queue, measured in counts.queues.items():
        yield from _of_queue((facts.name, queue), measured)


def _of_workers(facts: PoolFacts, counts: PoolCounts) -> Iterator[Sample]:
    pool = facts.name
    for state, number in facts.workers.items():
        yield Sample("queuepool_workers", (pool, state), number)
    yield Sample("queuepool_workers_wanted", (pool,), facts.wanted)
    yield Sample("queuepool_workers_max", (pool,), facts.room)
    for worker, size in facts.resident.items():
        yield Sample("queuepool_worker_resident_bytes", (pool, str(worker)), size)
    yield Sample("queuepool_running_job_seconds_max", (pool,), max(facts.longest_run, 0.0))
    # With those at 0: a counter that appears with its first increment has no rate.
    for reason in dict.fromkeys((*EXITS, *counts.exits)):
        yield Sample("queuepool_worker_exits_total", (pool, reason), counts.exits.get(reason, 0))


def _of_jobs(pool: str, counts: PoolCounts) -> Iterator[Sample]:
    waits: dict[str, Histogram] = defaultdict(lambda: NO_WAITS)
    for (queue, job), ended in counts.jobs.items():
        for outcome in OUTCOMES:
            yield Sample("queuepool_jobs_total", (pool, queue, job, outcome), getattr(ended, outcome))
        for reason in LOSSES:
            yield Sample("queuepool_attempts_lost_total", (pool, queue, job, reason), getattr(ended, reason))
        yield Sample("queuepool_job_run_seconds", (pool, queue, job), ended.run)
        waits[queue] = waits[queue].plus(ended.wait)
    for queue, wait in waits.items():
        yield Sample("queuepool_job_wait_seconds", (pool, queue), wait)
    for (job, error), number in counts.errors.items():
        yield Sample("queuepool_job_errors_total", (pool, job, error), number)


def _of_queue(labels: tuple[str, str], measured: QueueFacts) -> Iterator[Sample]:
    yield Sample("queuepool_queue_paused", labels, float(measured.paused))
    if not measured.measured_at:
        return  # zeros would say that the queue is empty
    for state in QUEUE_STATES:
        yield Sample("queuepool_queue_jobs", (*labels, state), getattr(measured, state))
    yield Sample("queuepool_queue_oldest_seconds", labels, measured.oldest)
    yield Sample("queuepool_queue_overdue_seconds", labels, measured.overdue)
    yield Sample("queuepool_queue_measured_timestamp_seconds", labels, measured.measured_at)


def exposition(samples: Iterable[Sample]) -> bytes:
    """The text of these samples, by metric in the table's order."""
    by_metric: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_metric[sample.metric].append(sample)
    lines = [line for name, metric in METRICS.items() for line in _lines(metric, by_metric.get(name, ()))]
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(metric: Metric, samples: Iterable[Sample]) -> Iterator[str]:
    if samples:
        yield f"# HELP {metric.name} {metric.help}"
        yield f"# TYPE {metric.name} {GAUGE if metric.kind == INFO else metric.kind}"
    for sample in samples:
        values = (text.translate(_ESCAPES) for text in sample.labels)
        labels = ",".join([f'{name}="{value}"' for name, value in zip(metric.labels, values, strict=True)])
        if isinstance(sample.value, Histogram):
            yield from _of_histogram(metric.name, labels, sample.value)
        else:
            yield f"{metric.name}{{{labels}}} {_number(sample.value)}"


def _of_histogram(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    """With cumulative buckets, as Prometheus has them."""
    start, count = f"{name}_bucket{{{labels},", 0
    for bucket, count in zip(_BUCKETS[name], accumulate(histogram.counts), strict=True):
        yield f"{start}{bucket}{count}"
    yield f"{name}_count{{{labels}}} {count}"
    yield f"{name}_sum{{{labels}}} {_number(histogram.total)}"


def _number(value: float) -> str:
    if isfinite(value):
        return repr(value)
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"
