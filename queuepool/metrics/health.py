"""Is a pool live, started, ready? Each answer is empty for yes, else the reason in a line. None depends on a job.

Whether it is ready is for ``board/health.py`` to say. The same as ``queuepool_probe.py``, which cannot import this; a
test compares their answers.
"""

from __future__ import annotations

from queuepool.board.health import DEAD_AFTER
from queuepool.metrics.facts import PoolFacts


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
    return not_live(facts) or not_started(facts) or facts.hindrance
