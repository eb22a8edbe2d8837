"""A pool of which everything is known: each metric has a value."""

from __future__ import annotations

from queuepool.board.counts import (
    NO_RUNS,
    NO_WAITS,
    FlowFacts,
    Histogram,
    JobCounts,
    LimitFacts,
    PoolCounts,
    QueueFacts,
)
from queuepool.board.overview import ScalingRow
from queuepool.metrics.samples import WORKER_STATES, PoolFacts

#: one each of 4 ms, 40 ms and more than an hour
RUNS = Histogram((1, 0, 0, 1, *NO_RUNS.counts[4:-1], 1), 3700.044)
WAITS = Histogram((0, 2, *NO_WAITS.counts[2:]), 0.06)
#: what a label's value may not break
NASTY = 'a"b\\c{d}\ne'
FACTS = PoolFacts(
    name="mails",
    connection="main",
    beat_age=0.25,
    ready_at=1_790_000_001.0,
    started_at=1_790_000_000.0,
    read_at=1_790_000_100.0,
    generation=2,
    workers=dict.fromkeys(WORKER_STATES, 0) | {"idle": 1, "busy": 2},
    wanted=3,
    room=31,
    resident={1: 50 << 20, 2: 60 << 20},
    longest_run=12.5,
    alerts=(("wait", "high"), ("running", NASTY)),
    scaling=ScalingRow(fewest=2, most=4, wish=4, needed=9, why="9 jobs wait; max_workers", held="max_workers"),
)
COUNTS = PoolCounts(
    jobs={
        ("high", "send"): JobCounts(done=2, failed=1, timeout=1, outgrown=1, run=RUNS, wait=WAITS),
        ("high", NASTY): JobCounts(released=1, run=RUNS, wait=WAITS),
        ("low", "send"): JobCounts(given_back=5, outgrown=2),
    },
    errors={("send", "ValueError"): 1},
    exits={"timeout": 1},
    queues={
        "high": QueueFacts(ready=3, delayed=1, reserved=2, oldest=4.5, overdue=0.5, measured_at=1_790_000_099.0),
        "low": QueueFacts(paused=True),
    },
    failed_jobs=7,
    outages=2,
    limits={"import": LimitFacts(2, 2, 40, False, 75.0, 0.0)},
    flows=FlowFacts(3, 40, 1_790_000_040.0, 1_790_000_099.0, {"done": 5, "failed": 1, "cancelled": 0, "expired": 0}),
)
