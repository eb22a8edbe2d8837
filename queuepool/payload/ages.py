"""When a job was pushed, and for how long it has been ready, as far as its payload says it."""

from __future__ import annotations

import json
from functools import lru_cache

from queuepool.payload.options import is_time

#: where a payload has the time of its push as the text of Unix seconds with a fraction, as Horizon writes it
PUSHED_AT = "pushedAt"
#: seconds from ``createdAt``, which is whole, within which ``pushedAt`` is the same moment
_SAME = 2.0
#: as ``is_time`` has it
_LATEST = 100_000_000_000


def ready_for(payload: bytes | None, now: float) -> float | None:
    """Seconds since the job was due, not below 0; ``now`` in Unix seconds by the store's clock.

    ``None`` if the payload does not say it: on a later attempt, and if it has no ``createdAt`` or no ``delay`` (Laravel
    before 12.11). A producer whose clock is ahead gives 0, one that is behind as much too much.
    """
    try:
        fields = json.loads(payload or b"null")
        created, delay, attempts = fields["createdAt"], fields["delay"], fields.get("attempts") or 0
        pushed = fields.get(PUSHED_AT)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_first = isinstance(attempts, int) and attempts == 0
    due = due_at(created, delay, pushed) if is_first else None
    return None if due is None else max(now - due, 0.0)


@lru_cache(maxsize=1)  # the payloads of a bulk have one time
def as_text(pushed: float) -> str:
    """Unix seconds as ``PUSHED_AT`` holds them."""
    return f"{pushed:.4f}"


def due_at(created: object, delay: object, pushed: object) -> float | None:
    """When a job was due, in Unix seconds, by its ``createdAt``, ``delay`` and ``pushedAt``.

    ``None`` if one of the first two is no time.
    """
    # Nearly all are such; ``is_time`` for both costs more than all the rest.
    if delay is None and pushed.__class__ is str and created.__class__ is int and 0 <= created < _LATEST:
        return precise(pushed, created)
    delay = delay or 0
    if not (is_time(created) and is_time(delay)):
        return None
    return (created if pushed is None else precise(pushed, created)) + delay


def precise(pushed: object, created: float) -> float:
    """``pushed`` (a number or its text) if it is the same moment as ``created``, else that."""
    try:
        at = float(pushed)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return created
    return at if -_SAME <= at - created <= _SAME else created
