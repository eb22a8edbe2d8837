"""Until when a job may begin, by ``@job(expires=…)``: after that it is dropped, as nobody waits for it any more.

Laravel's workers know nothing of it. A job that somebody retries by hand is wanted again, whenever it was to begin.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queuepool.payload.options import is_time

#: where a payload has the Unix second, and the mark of a retry by hand, which no signature covers
EXPIRES, RETRIED = "qpExpires", "qpRetried"


def late_by(fields: Mapping[str, Any], now: float) -> float:
    """By how many seconds the first attempt at the job with this payload comes too late; 0 if it may begin.

    ``now`` is in Unix seconds, by the store's clock.
    """
    until = fields.get(EXPIRES)
    return max(now - until, 0.0) if is_time(until) and not fields.get(RETRIED) else 0.0
