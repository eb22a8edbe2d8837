"""Three tenants under one limit, over two hosts: when the first and the last job of each has begun."""

from __future__ import annotations

import time

from queuepool import configure
from tests.bench.limits import jobs
from tests.bench.rig import Rig, until
from tests.bench.words import QUICK, say

#: jobs of each tenant, in the order in which they are dispatched
_JOBS = (1000, 100, 1) if QUICK else (10_000, 100, 1)
_HOSTS = ("blue", "green")
_WORKERS = 3
_AT_ONCE = 1000


def measure(rig: Rig) -> None:
    """Each host has a pool of its own, with more workers in all than the limit has places."""
    configure(rig.queue)
    first, second = (("--runtime-dir", str(rig.path / host)) for host in _HOSTS)
    with rig.pool(_WORKERS, *first, host=_HOSTS[0]), rig.pool(_WORKERS, *second, host=_HOSTS[1]):
        rig.forget()
        began = time.monotonic()
        dispatched = [dispatch(tenant, count) - began for tenant, count in enumerate(_JOBS)]
        until(lambda: rig.begun() == sum(_JOBS), within=1800)
        on_first = {one.pid for one in rig.family()[2 : 2 + _WORKERS]}
    trail = rig.trail()
    for tenant, count in enumerate(_JOBS):
        moments = sorted(at - began for whose, at, _ in trail if whose == tenant)
        first_after = f"its first began after {moments[0]:.2f} s, its last after {moments[-1]:.2f} s"
        say(f"tenant with {count:,} jobs, dispatched after {dispatched[tenant]:.2f} s: {first_after}")
    on_one = sum(pid in on_first for _, _, pid in trail) / len(trail)
    say(f"  {on_one:.0%} began on one host, {1 - on_one:.0%} on the other")


def dispatch(tenant: int, count: int) -> float:
    """Returns when all are (monotonic)."""
    for first in range(0, count, _AT_ONCE):
        jobs.shared.bulk([{"tenant": tenant}] * min(_AT_ONCE, count - first))
    return time.monotonic()
