"""For how long a job has been ready, as far as its payload says it."""

from __future__ import annotations

import json

from queuepool.payload.options import is_time


def ready_for(payload: bytes | None, now: float) -> float | None:
    """Seconds since the job was due, not below 0; ``now`` in Unix seconds by the store's clock.

    ``None`` if the payload does not say it: on a later attempt, and if it has no ``createdAt`` or no ``delay`` (Laravel
    before 12.11). A producer whose clock is ahead gives 0, one that is behind as much too much.
    """
    try:
        fields = json.loads(payload or b"null")
        created, delay, attempts = fields["createdAt"], fields["delay"] or 0, fields.get("attempts") or 0
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_first = isinstance(attempts, int) and attempts == 0
    return max(now - created - delay, 0.0) if is_first and is_time(created) and is_time(delay) else None
