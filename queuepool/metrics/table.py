"""Every metric: its name, type, labels and meaning. The samples, the reference and the tests follow this table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from queuepool.board.meters import EXITS, LOSSES, OUTCOMES

COUNTER, GAUGE, HISTOGRAM, INFO = "counter", "gauge", "histogram", "info"
#: the values of label ``state``: of a queue's jobs, and of workers
QUEUE_STATES = ("ready", "delayed", "reserved", "quarantined")
WORKER_STATES = ("starting", "idle", "busy", "paused", "draining", "dead")


class Metric(NamedTuple):
    """One metric; ``labels`` come in this order in a sample."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def _one_of(values: tuple[str, ...]) -> str:
    return f"{', '.join(values[:-1])} or {values[-1]}"


_POOL, _QUEUE, _STORE = ("pool",), ("pool", "queue"), ("pool", "connection")
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
    Metric("queuepool_worker_resident_bytes", GAUGE, (*_POOL, "worker"), "Resident memory of each worker by number"),
    Metric("queuepool_running_job_seconds_max", GAUGE, _POOL, "Run time of the longest running job; 0 = none"),
    Metric(
        "queuepool_worker_exits_total", COUNTER, (*_POOL, "reason"), f"Workers that left, by reason: {_one_of(EXITS)}"
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
    Metric("queuepool_alert", GAUGE, ("pool", "kind", "subject"), "1 for each alert of `[alerts]` that is raised"),
    Metric("queuepool_build_info", INFO, ("version", "python"), "Versions of queuepool and of Python"),
]  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
