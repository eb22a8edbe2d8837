"""``exponential``: a backoff that doubles, for ``@job`` and ``retry_on``."""

from __future__ import annotations

from itertools import count, takewhile

from queuepool.errors import ConfigError
from queuepool.jobs.job_options import Seconds, delay_of
from queuepool.settlement.backoff import Backoff


def exponential(first: Seconds, most: Seconds, *, jitter: bool = False) -> Backoff:
    """A backoff that doubles from ``first`` up to ``most`` (seconds, ``"5m"`` or a ``timedelta``), and then stays.

    ``jitter``: each delay is shortened by chance, to no less than its half, so that jobs that failed together do not
    come back together. The payload has the whole delays: Laravel's workers wait for these. Raises ``ConfigError``.
    """
    begin, end = (round(delay_of("backoff", delay), 3) for delay in (first, most))  # as workers read them
    if not 0 < begin <= end:
        raise ConfigError("@job", f"backoff: exponential({begin:g}, {end:g}) begins above 0, and ends no lower")
    if not isinstance(jitter, bool):
        raise ConfigError("@job", f"backoff: exponential: jitter cannot be {jitter!r}: it is True or False")
    growing = takewhile(lambda delay: delay < end, (begin * 2**step for step in count()))
    return Backoff((*growing, end), jitter)
