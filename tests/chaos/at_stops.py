"""Stops of a pool while workers of its killed master still run jobs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from tests.chaos.pool import Pool
from tests.chaos.rig import Rig

#: how long the pool stays away after the stop, in leases: without renewal a lease ends in this time
_AWAY = 1.5


def stop_beside_orphans(rig: Rig) -> Iterator[float]:
    """Kill a master and its steward while workers run jobs, stop the next, and start none for longer than a lease."""
    while True:
        pool = rig.chance.choice(rig.pools)
        if not pool.pids(" busy "):
            yield 0.02
            continue
        yield from _killed(rig, pool)
        rig.note_master(pool, "stop")
        with pool.kept_away():
            pool.end(signal.SIGTERM)
            yield _AWAY * rig.plan.retry_after


def _killed(rig: Rig, pool: Pool) -> Iterator[float]:
    """Kill its master and its steward, and wait until the next one has a steward."""
    rig.note_master(pool, "master")
    killed, stewards = pool.process, pool.pids(": steward ")
    pool.end(signal.SIGKILL)
    for steward in stewards:
        rig.kill(pool, steward, signal.SIGKILL, "steward")
    while pool.process is killed or not pool.pids(": steward "):
        yield 0.02


NEMESES = {"stop_beside_orphans": (stop_beside_orphans, 1)}
