"""Every metric: its row, and its sample from a pool's board; and all of them in Prometheus' text format 0.0.4.

The samples, the reference and the tests follow the rows. The facts also show whether the pool is live, started and
ready. No store is read. ``prometheus_client`` is not used: it takes twice as long for the text, and 90 ms to be
imported; our tests check the text with it.
"""

from __future__ import annotations

import platform
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import isfinite, isnan
from types import MappingProxyType
from typing import NamedTuple

from queuepool import __version__
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.counts import NO_WAITS, FlowFacts, Histogram, LimitFacts, PoolCounts, QueueFacts
from queuepool.board.health import DEAD_AFTER, LATE_AFTER, health_of
from queuepool.board.meters import EXITS, FLOW_ENDS, LOSSES, OUTCOMES, RUN_BOUNDS, WAIT_BOUNDS
from queuepool.board.overview import ScalingRow
from queuepool.board.scaling import HELD
from queuepool.board.status import overview

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
#: the values of label ``state``: of a queue's jobs, and of workers; and those of ``bound``
QUEUE_STATES = ("ready", "delayed", "reserved", "quarantined", "parked")
WORKER_STATES = ("starting", "idle", "busy", "paused", "draining", "dead")
BOUNDS = ("min_workers", "max_workers")
TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: the last label of each of a histogram's buckets, and what follows it
_BUCKETS: Mapping[str, tuple[str, ...]] = {
    name: tuple(f'le="{bound}"}} ' for bound in (*bounds, "+Inf"))
    for name, bounds in (("queuepool_job_run_seconds", RUN_BOUNDS), ("queuepool_job_wait_seconds", WAIT_BOUNDS))
}
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_MB = 1024 * 1024
_STATES: Mapping[State, str] = {
    State.IDLE: "idle", State.BUSY: "busy", State.PAUSED: "paused",
    State.DRAINING: "draining", State.STOPPING: "draining",
}  # fmt: skip


class Metric(NamedTuple):
    """One metric; ``labels`` come in this order in a sample."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def _one_of(values: tuple[str, ...]) -> str:
    return f"{', '.join(values[:-1])} or {values[-1]}"


_POOL, _QUEUE, _STORE, _LIMIT = ("pool",), ("pool", "queue"), ("pool", "connection"), ("pool", "limit")
#: not `job`: Prometheus gives each target a label of that name, and would rename ours to `exported_job`
_JOB = ("pool", "queue", "job_name")
_ALL = [
    Metric("queuepool_up", GAUGE, _POOL, "1 if the pool's master lives and its loop runs"),
    Metric("queuepool_ready", GAUGE, _POOL, "1 if a worker may begin a job now, as `/readyz` says"),
    Metric(
        "queuepool_boot_problem", GAUGE, _POOL, "1 while the newest code does not become ready, or no worker does"
    ),
    Metric(
        "queuepool_master_beat_timestamp_seconds", GAUGE, _POOL, "When the master's loop last came round"
    ),
    Metric("queuepool_pool_start_timestamp_seconds", GAUGE, _POOL, "When the pool started"),
    Metric("queuepool_generation", GAUGE, _POOL, "Version of the code to run; each restart raises it"),
    Metric("queuepool_maintenance", GAUGE, _POOL, "1 in maintenance mode"),
    Metric("queuepool_store_up", GAUGE, _STORE, "0 while the store of the queues cannot be reached"),
    Metric("queuepool_store_full", GAUGE, _STORE, "1 while the store of the queues has no room for new jobs"),
    Metric(
        "queuepool_store_outages_total", COUNTER, _STORE, "How often the store was lost since the start of the pool"
    ),
    Metric("queuepool_failed_jobs", GAUGE, _STORE, "Records of failed jobs that the store keeps"),
    Metric("queuepool_workers", GAUGE, (*_POOL, "state"), f"Workers by state: {_one_of(WORKER_STATES)}"),
    Metric("queuepool_workers_wanted", GAUGE, _POOL, "Workers that the pool is to have"),
    Metric("queuepool_workers_max", GAUGE, _POOL, "Workers that the pool has room for, as `queuepool scale` allows"),
    Metric(
        "queuepool_workers_needed", GAUGE, _POOL,
        "Workers that the jobs of a pool that scales need, whatever its bounds",
    ),
    Metric("queuepool_workers_wish", GAUGE, _POOL, "Workers that the steward of a pool that scales wishes for"),
    Metric("queuepool_workers_bound", GAUGE, (*_POOL, "bound"), f"Bounds of a pool that scales: {_one_of(BOUNDS)}"),
    Metric(
        "queuepool_workers_held", GAUGE, (*_POOL, "reason"),
        f"1 for what keeps a pool that scales from the number of workers that it needs: {_one_of(HELD)}",
    ),
    Metric("queuepool_worker_resident_bytes", GAUGE, (*_POOL, "worker"), "Resident memory of each worker by number"),
    Metric("queuepool_running_job_seconds_max", GAUGE, _POOL, "Run time of the longest running job; 0 = none"),
    Metric(
        "queuepool_worker_exits_total", COUNTER, (*_POOL, "reason"), f"Workers that left, by reason: {_one_of(EXITS)}"
    ),
    Metric(
        "queuepool_worker_memory_exits_total", COUNTER, ("pool", "job_name"),
        "Workers that left at `memory`, by the job in whose runs they had grown most",
    ),
    Metric(
        "queuepool_jobs_total", COUNTER, (*_JOB, "outcome"),
        f"Attempts that have ended, by outcome: {_one_of(OUTCOMES)}; their sum is all attempts",
    ),
    Metric(
        "queuepool_attempts_lost_total", COUNTER, (*_JOB, "reason"),
        f"Attempts that their worker could not end, by reason: {_one_of(LOSSES)}; they have an outcome, too",
    ),
    Metric("queuepool_job_errors_total", COUNTER, ("pool", "job_name", "error"), "Exceptions of jobs by class"),
    Metric("queuepool_job_run_seconds", HISTOGRAM, _JOB, "Run times of attempts, also of those that were killed"),
    Metric("queuepool_job_wait_seconds", HISTOGRAM, _QUEUE, "How long jobs waited for their first attempt"),
    Metric("queuepool_queue_jobs", GAUGE, (*_QUEUE, "state"), f"Jobs of a queue by state: {_one_of(QUEUE_STATES)}"),
    Metric("queuepool_queue_oldest_seconds", GAUGE, _QUEUE, "How long the next job has been ready; 0 = none"),
    Metric(
        "queuepool_queue_overdue_seconds", GAUGE, _QUEUE,
        "How long the first delayed job has been due without being made ready; 0 = none",
    ),
    Metric("queuepool_queue_paused", GAUGE, _QUEUE, "1 if the queue is paused"),
    Metric(
        "queuepool_queue_measured_timestamp_seconds", GAUGE, _QUEUE, "When the queue was last measured"
    ),
    Metric("queuepool_flows", GAUGE, _STORE, "Flows of the store that are under way; only where there are flows"),
    Metric("queuepool_flow_members_waiting", GAUGE, _STORE, "Members of these flows that have not begun"),
    Metric("queuepool_flow_oldest_seconds", GAUGE, _STORE, "How long ago the oldest of them was written; 0 = none"),
    Metric(
        "queuepool_flows_ended_total", COUNTER, (*_POOL, "state"),
        f"Flows that processes of this pool have ended, by what they have become: {_one_of(FLOW_ENDS)}",
    ),
    Metric(
        "queuepool_limit_parked", GAUGE, _LIMIT,
        "Jobs that wait at a limit; of the 20 limits at which most wait, and so the next ones",
    ),
    Metric("queuepool_limit_held", GAUGE, _LIMIT, "Places of a limit that jobs hold, or starts that count"),
    Metric("queuepool_limit_number", GAUGE, _LIMIT, "Number of a limit that is in force"),
    Metric("queuepool_limit_oldest_seconds", GAUGE, _LIMIT, "How long the first job at a limit has waited; 0 = none"),
    Metric(
        "queuepool_limit_unused_seconds", GAUGE, _LIMIT,
        "How long a place of a limit has been free though jobs wait for it; 0 = none is",
    ),
    Metric("queuepool_alert", GAUGE, ("pool", "kind", "subject"), "1 for each alert of `[alerts]` that is raised"),
    Metric("queuepool_build_info", INFO, ("version", "python"), "Versions of queuepool and of Python"),
]  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})


class Sample(NamedTuple):
    """One value of a metric; ``labels`` are the values of its labels, in the table's order."""

    metric: str
    labels: tuple[str, ...]
    value: float | Histogram


def of_program() -> Iterator[Sample]:
    """What is the same for all pools."""
    yield Sample("queuepool_build_info", (__version__, platform.python_version()), 1.0)


def of_stopped(name: str) -> Iterator[Sample]:
    """The samples of a pool that does not run."""
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
    if counts.flows.measured_at:
        yield from _of_flows(facts, counts.flows)
    for name, limit in counts.limits.items():
        yield from _of_limit((facts.name, name), limit)
    for alert in facts.alerts:
        yield Sample("queuepool_alert", (facts.name, *alert), 1.0)
    yield from _of_workers(facts, counts)
    yield from _of_jobs(facts.name, counts)
    for queue, measured in counts.queues.items():
        yield from _of_queue((facts.name, queue), measured)


def _of_flows(facts: PoolFacts, flows: FlowFacts) -> Iterator[Sample]:
    store = facts.name, facts.connection
    yield Sample("queuepool_flows", store, flows.under_way)
    yield Sample("queuepool_flow_members_waiting", store, flows.waiting)
    yield Sample("queuepool_flow_oldest_seconds", store, max(facts.read_at - flows.since, 0.0) if flows.since else 0.0)
    for state, number in flows.ended.items():
        yield Sample("queuepool_flows_ended_total", (facts.name, state), number)


def _of_limit(labels: tuple[str, str], limit: LimitFacts) -> Iterator[Sample]:
    yield Sample("queuepool_limit_parked", labels, limit.parked)
    yield Sample("queuepool_limit_held", labels, limit.held)
    yield Sample("queuepool_limit_number", labels, limit.number)
    yield Sample("queuepool_limit_oldest_seconds", labels, limit.oldest)
    yield Sample("queuepool_limit_unused_seconds", labels, limit.unused)


def _of_workers(facts: PoolFacts, counts: PoolCounts) -> Iterator[Sample]:
    pool = facts.name
    for state, number in facts.workers.items():
        yield Sample("queuepool_workers", (pool, state), number)
    yield Sample("queuepool_workers_wanted", (pool,), facts.wanted)
    yield Sample("queuepool_workers_max", (pool,), facts.room)
    if facts.scaling and facts.scaling.most:
        yield from _of_scaling(pool, facts.scaling)
    for worker, size in facts.resident.items():
        yield Sample("queuepool_worker_resident_bytes", (pool, str(worker)), size)
    yield Sample("queuepool_running_job_seconds_max", (pool,), max(facts.longest_run, 0.0))
    # With those at 0: a counter that appears with its first increment has no rate.
    for reason in dict.fromkeys((*EXITS, *counts.exits)):
        yield Sample("queuepool_worker_exits_total", (pool, reason), counts.exits.get(reason, 0))


def _of_scaling(pool: str, scaling: ScalingRow) -> Iterator[Sample]:
    if scaling.needed is not None:  # else nothing is known, and a 0 would say that none is needed
        yield Sample("queuepool_workers_needed", (pool,), scaling.needed)
    if scaling.wish is not None:
        yield Sample("queuepool_workers_wish", (pool,), scaling.wish)
    for bound, number in zip(BOUNDS, (scaling.fewest, scaling.most), strict=True):
        yield Sample("queuepool_workers_bound", (pool, bound), number)
    for reason in HELD:
        yield Sample("queuepool_workers_held", (pool, reason), float(scaling.held == reason))


def _of_jobs(pool: str, counts: PoolCounts) -> Iterator[Sample]:
    waits: dict[str, Histogram] = defaultdict(lambda: NO_WAITS)
    outgrown = Counter[str]()
    for (queue, job), ended in counts.jobs.items():
        for outcome in OUTCOMES:
            yield Sample("queuepool_jobs_total", (pool, queue, job, outcome), getattr(ended, outcome))
        for reason in LOSSES:
            yield Sample("queuepool_attempts_lost_total", (pool, queue, job, reason), getattr(ended, reason))
        yield Sample("queuepool_job_run_seconds", (pool, queue, job), ended.run)
        waits[queue] = waits[queue].plus(ended.wait)
        outgrown[job] += ended.outgrown
    for queue, wait in waits.items():
        yield Sample("queuepool_job_wait_seconds", (pool, queue), wait)
    for job, number in outgrown.items():
        yield Sample("queuepool_worker_memory_exits_total", (pool, job), number)
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
    """The lines of a histogram, with cumulative buckets, as Prometheus has them."""
    start, count = f"{name}_bucket{{{labels},", 0
    for bucket, count in zip(_BUCKETS[name], accumulate(histogram.counts), strict=True):
        yield f"{start}{bucket}{count}"
    yield f"{name}_count{{{labels}}} {count}"
    yield f"{name}_sum{{{labels}}} {_number(histogram.total)}"


def _number(value: float) -> str:
    if isfinite(value):
        return repr(value)
    return "NaN" if isnan(value) else "+Inf" if value > 0 else "-Inf"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """One pool at one moment. Durations are in seconds, timestamps in Unix seconds; 0.0 = never."""

    name: str
    connection: str
    #: seconds since the master's loop last came round; infinity when it never has
    beat_age: float = float("inf")
    #: when a worker or a template had first imported the modules
    ready_at: float = 0.0
    started_at: float = 0.0
    #: since when the store has been away; 0.0 = it is not
    store_lost_at: float = 0.0
    #: when all this was read
    read_at: float = 0.0
    #: since when the store has refused new jobs; 0.0 = it has room
    store_full_at: float = 0.0
    #: why no job begins; empty = a worker may begin one
    hindrance: str = ""
    #: whether the newest code does not become ready, or no worker does
    has_boot_problem: bool = False
    generation: int = 0
    maintenance: bool = False
    #: by state, all of ``WORKER_STATES``
    workers: Mapping[str, int] = field(default_factory=dict)
    wanted: int = 0
    room: int = 0
    #: resident bytes by a worker's number
    resident: Mapping[int, int] = field(default_factory=dict)
    longest_run: float = 0.0
    #: kind and subject of each alert that is raised
    alerts: tuple[tuple[str, str], ...] = ()
    #: what the number of workers follows, if not the configuration alone
    scaling: ScalingRow | None = None


def facts_of(name: str, connection: str, board: Board) -> PoolFacts:
    """The facts now; values that a job has overwritten may be nonsense, but raise nothing."""
    header, slots, now = board.header, board.of(Role.WORKER), time.time()
    living = [slot for slot in slots if slot.pid and not slot.dead]
    shown = overview(name, board)
    health = health_of(shown)
    return PoolFacts(
        name=name,
        connection=connection,
        beat_age=_age(header.beat),
        ready_at=header.ready,
        started_at=header.since,
        store_lost_at=header.store_lost,
        read_at=now,
        store_full_at=header.store_full,
        hindrance="" if health.takes_jobs else health.troubles[0].text,
        has_boot_problem=health.has("boot"),
        generation=header.generation,
        maintenance=bool(header.down),
        workers=dict.fromkeys(WORKER_STATES, 0) | Counter(map(_state_of, slots)),
        wanted=header.target,
        room=board.max_workers,
        resident={slot.number: slot.rss * _MB for slot in living},
        alerts=tuple(dict.fromkeys((_sound(one.kind), _sound(one.subject)) for one in shown.alerts)),
        longest_run=max((now - one.since for slot in living for one in slot.running()), default=0.0),
        scaling=shown.scaling,
    )


def _age(beat: float) -> float:
    """Seconds since the beat; infinity if there is none, or if a job has overwritten it with an impossible one."""
    now = time.monotonic()
    return now - beat if 0.0 < beat <= now else float("inf")


def _sound(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()


def _state_of(slot: Slot) -> str:
    return "dead" if slot.dead else _STATES.get(State(slot.state), "starting")


# Is a pool live, started, ready? Each answer is empty for yes, else the reason in a line; none depends on a job.
# ``queuepool_probe.py`` has the same rules, as it cannot import this; a test compares the answers.


def not_live(facts: PoolFacts) -> str:
    """Why the pool is dead. Only the master's loop counts: a restart would repair nothing else."""
    if facts.beat_age == float("inf"):
        return "the master's loop has never come round"
    return "" if facts.beat_age < DEAD_AFTER else f"the master's loop last came round {facts.beat_age:.0f} s ago"


def not_started(facts: PoolFacts) -> str:
    """Why the pool has not started yet."""
    return "" if facts.ready_at else "no worker has imported the modules yet"


def not_ready(facts: PoolFacts) -> str:
    """Why the pool takes no jobs now."""
    return not_live(facts) or not_started(facts) or facts.hindrance
