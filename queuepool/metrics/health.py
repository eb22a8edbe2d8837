"""Is a pool live, started, ready? Each answer is empty for yes, else the reason in a line. None depends on a job.

The same as ``queuepool_probe.py``, which cannot import this; a test compares their answers.
"""

from __future__ import annotations

from queuepool.board.board import State
from queuepool.metrics.facts import PoolFacts

#: seconds without a beat after which ``queuepool_up`` is 0, and those after which the pool counts as dead
MAX_BEAT_AGE, DEAD_AFTER = 5.0, 15.0
#: seconds without its store after which a pool is not ready
MAX_OUTAGE = 60.0


def not_live(facts: PoolFacts) -> str:
    """Why the pool is dead. Nothing but the master's loop counts: a restart would mend nothing else."""
    if facts.beat_age == float("inf"):
        return "the master's loop has never come round"
    return "" if facts.beat_age < DEAD_AFTER else f"the master's loop last came round {facts.beat_age:.0f} s ago"


def not_started(facts: PoolFacts) -> str:
    """Why the pool has not started yet."""
    return "" if facts.ready_at else "no worker has imported the modules yet"


def not_ready(facts: PoolFacts) -> str:
    """Why the pool takes no jobs now."""
    outage = facts.read_at - facts.store_lost_at if facts.store_lost_at else 0.0
    if reason := not_live(facts) or not_started(facts):
        return reason
    if facts.state != State.RUNNING:
        return f"the pool is {facts.state.name.lower()}"
    if outage > MAX_OUTAGE:
        return f"the store has been away for {outage:.0f} s"
    return "" if facts.workers.get("idle") or facts.workers.get("busy") else "no worker is idle or busy"
