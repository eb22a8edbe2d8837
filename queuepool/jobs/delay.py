"""A delay in any form that a caller may give it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from queuepool.config import values

#: seconds, ``"90"`` or ``"5m"`` (s, m, h), a ``timedelta``, or a ``datetime``; a naive one is local time
Delay = float | str | timedelta | datetime
#: seconds that a unique lock lasts, unless said otherwise
DAY = 86400.0


def seconds_until(delay: Delay) -> float:
    """Seconds from now, 0.0 for the past. Raises ``ValueError`` for a value that is not a delay."""
    if isinstance(delay, str):
        return values.seconds(delay)
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    elif isinstance(delay, datetime):
        delay = (delay.astimezone(UTC) - datetime.now(UTC)).total_seconds()
    if not isinstance(delay, (int, float)) or not -1e10 < delay < 1e10:
        raise ValueError(f"{delay!r} is no delay: give seconds, '5m', a timedelta or a datetime")
    return max(float(delay), 0.0)
