"""Delays in all the forms that a caller may give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from queuepool.config import values

#: seconds, ``"90"`` or ``"5m"`` (s, m, h), a ``timedelta``, or a ``datetime``; a naive one is local time
Delay = float | str | timedelta | datetime
#: seconds that a unique lock lasts, unless said otherwise
DAY = 86400.0
#: seconds in the past that no delay can mean
_NEVER = 1e10


def seconds_until(delay: Delay) -> float:
    """Seconds from now, 0.0 for the past. Raises ``ValueError`` for an invalid delay, or one over ten years."""
    if isinstance(delay, str):
        return values.seconds(delay)
    seconds = _seconds_of(delay)
    # Databases limit times: the column of PostgreSQL's table ends in 2038.
    if seconds > values.LONGEST:
        raise ValueError(f"the delay {delay!r} is too long: the maximum is ten years (87600h)")
    return max(seconds, 0.0)


def _seconds_of(delay: object) -> float:
    try:
        if isinstance(delay, timedelta):
            return delay.total_seconds()
        if isinstance(delay, datetime):
            return (delay.astimezone(UTC) - datetime.now(UTC)).total_seconds()
        if isinstance(delay, (int, float)) and not isinstance(delay, bool) and delay > -_NEVER:  # so it is not NaN
            return float(delay)
    except (OverflowError, ValueError):  # the first and last days of the calendar, or an int too large for a float
        pass
    raise ValueError(f"{delay!r} is not a delay: give seconds, '5m', a timedelta or a datetime")
