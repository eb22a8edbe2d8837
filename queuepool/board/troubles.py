"""What an operator should know about a pool beside its numbers, in words: ``status`` and ``top`` say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from queuepool.board.pauses import words_of

#: the states that no process writes itself: no live master, and a master that does not run
NOT_RUNNING, STUCK = "not running", "stopped by a signal"
#: states in which no jobs run although the pool should
IDLING = {
    "starting": (
        "workers wait: the steward has not read the control keys yet (restart, pause, maintenance); if this lasts, the "
        "log says why"
    ),
    "failing": "the steward dies again and again, see the log: jobs of dead workers and delayed jobs wait",
}
#: seconds after which a master that goes round every quarter of a second is late
_SLOW = 5.0
_STATES = {
    **IDLING,
    "paused": "no worker begins a job until queuepool continue",
    "draining": "the pool is being stopped: running jobs may finish",
}


def runs_no_jobs(pool: Mapping[str, Any]) -> bool:
    """Whether no job can begin although the pool is not paused; ``pool`` is as for ``troubles``, or damaged."""
    return str(pool.get("state")) in {STUCK, *IDLING} or pool.get("workers") == 0


def troubles(pool: Mapping[str, Any]) -> Iterator[str]:
    """One line for each; ``pool`` is as of ``overview``, or a notice from another host, of any version."""
    if pool["state"] == STUCK:
        ways = f"queuepool continue or kill -CONT {pool['master']}"
        yield f"no worker is replaced, or killed when it is late, until {ways}"
    elif words := _STATES.get(pool["state"]):
        yield words
    elif (age := pool.get("beat_age") or 0.0) > _SLOW:
        yield f"the master has been busy or stuck for {age:.0f} s: it replaces and kills no worker meanwhile"
    if not pool["workers"]:
        yield "no job runs: it was scaled to 0 workers"
    if outdated := pool.get("outdated"):
        why = f", new ones do not come to work: {problem}" if (problem := pool["boot_problem"]) else ""
        yield f"restart under way: workers that still run the old code: {outdated}{why}"
    if orphans := pool.get("orphans"):
        yield f"workers of a killed master that still run, and for which a stop waits: {orphans}"
    for alert in pool.get("alerts", ()):
        yield f"alert since {alert['since']}: {alert['text']}"
    if pool["maintenance"]:
        yield "maintenance mode"
    if pool["paused"]:
        yield f"paused queues: {words_of(pool)}"
    yield from _stores(pool)


def _stores(pool: Mapping[str, Any]) -> Iterator[str]:
    if pool["store_lost"]:
        yield f"the store is away since {pool['store_lost']}"
    for store in ("failed_store", "control_store"):
        if since := pool.get(f"{store}_lost"):
            yield f"the {store.replace('_', ' ')} is away since {since}; the jobs go on"
    if waiting := pool.get("unrecorded"):
        yield f"failed jobs that wait for the failed store: {waiting}"
