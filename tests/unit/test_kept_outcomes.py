"""For how long the outcome of a job is kept: its payload decides, else its handler, the pool, its schedule."""

from __future__ import annotations

import json

from queuepool.config.settings import PoolSettings
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import Handler, Registry
from queuepool.payload.envelope import decode
from queuepool.worker.plan import Plans
from tests.support.each import each


@each(
    ("payload", "handler", "pool", "kept"),
    [
        (None, 0.0, 0.0, 0.0),
        ("+60", 0.0, 0.0, 60.0),
        ("+60", 0.0, 10.0, 10.0),
        ("+60", 5.0, 10.0, 5.0),
        (30, 5.0, 10.0, 30.0),
        ("30", 5.0, 10.0, 30.0),  # as PHP may write a number
        ("+x", 0.0, 0.0, 0.0),
    ],
)
def test_a_schedule_decides_only_where_nobody_else_does(payload, handler, pool, kept):
    registry = Registry()
    registry.add(Handler("report", lambda: None, Options(track=handler)))
    fields = {"id": "a", "job": "report", "data": {}, "attempts": 1, **({"qpTrack": payload} if payload else {})}
    plan = Plans(PoolSettings(track=pool), registry).of(decode(json.dumps(fields).encode()))

    assert kept == plan.track
    assert (payload == "+x") == bool(plan.options.warnings)
