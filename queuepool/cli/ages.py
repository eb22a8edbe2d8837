"""How long payloads have waited, and whether Laravel takes the outcomes that wait for it."""

from __future__ import annotations

from queuepool.cli.output import counted
from queuepool.payload.ages import ready_for
from queuepool.stores.contract import Measured

#: seconds after which an outcome should have been taken
_TAKEN_WITHIN = 60.0


def age(found: Measured) -> float | None:
    """For how many seconds the queue's next job has been ready; ``None`` if there is none, or nothing says it."""
    if not (found.ready or found.oldest):
        return None
    known = ready_for(found.payload, found.now) if found.oldest is None else found.oldest
    return None if known is None else round(known, 1)


def untaken(queue: str, found: Measured) -> str:
    """What to say if outcomes wait in ``queue`` for more than a minute; empty if none does."""
    waited = age(found)
    if waited is None or waited <= _TAKEN_WITHIN:
        return ""
    waiting = f"{counted(found.ready, 'outcome')} waiting in queue {queue}, the oldest for {waited:.0f} s"
    return f"{waiting}: no worker of Laravel serves it? Chains and batches stand still until one does"
