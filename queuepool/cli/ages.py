"""How long payloads have waited, and whether Laravel takes the outcomes that wait for it."""

from __future__ import annotations

import json

from queuepool.cli.output import counted
from queuepool.stores.contract import Sizes

#: seconds after which an outcome should have been taken
_TAKEN_WITHIN = 60.0


def age(payload: bytes | None, now: float) -> float | None:
    """Seconds since the payload was created; ``None`` if it does not say when."""
    try:
        created = json.loads(payload or b"null")["createdAt"]
        return max(round(now - float(created), 1), 0.0)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def untaken(queue: str, sizes: Sizes, now: float) -> str:
    """What to say if outcomes wait in ``queue`` for more than a minute; empty if none does."""
    waited = age(sizes.oldest, now)
    if waited is None or waited <= _TAKEN_WITHIN:
        return ""
    waiting = f"{counted(sizes.ready, 'outcome')} waiting in queue {queue}, the oldest for {waited:.0f} s"
    return f"{waiting}: no worker of Laravel serves it? Chains and batches stand still until one does"
