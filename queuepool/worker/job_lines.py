"""The log line for each finished job; a worker that runs many in a second sums them up in one line."""

from __future__ import annotations

import logging
import math
import time

from queuepool import log
from queuepool.events import JobProcessed

_log = logging.getLogger("queuepool")
#: most jobs in a second that get a line each
_MOST = 100
_SECOND = 1.0


class JobLines:
    """Counts the jobs that a worker has done this second; all times are monotonic seconds.

    The first jobs of a second get a line each. If there are more, one line at its end sums up the rest, and another
    the whole next second.
    """

    def __init__(self) -> None:
        # At DEBUG each event is logged anyway, and above INFO no such line is wanted.
        self._is_on = _log.getEffectiveLevel() == logging.INFO
        self._singles = _MOST if self._is_on else 0
        self._count = 0
        self._since = time.monotonic()
        self._until = self._since + _SECOND if self._is_on else math.inf

    def is_due(self, now: float) -> bool:
        """Count one more job; returns whether a line is due."""
        self._count += 1
        return self._count <= self._singles or now >= self._until

    def write(self, event: JobProcessed, now: float) -> None:
        """Write the lines that are due after the job counted last."""
        if now >= self._until:
            self._count -= 1
            self.sum_up(now)
            self._count += 1
        if self._count <= self._singles:
            log.write(event)

    def rest(self) -> None:
        """Sum up if the second is over; called while no job runs."""
        if (now := time.monotonic()) >= self._until:
            self.sum_up(now)

    def sum_up(self, now: float) -> None:
        """Write one line for the jobs that have none yet, and start another second."""
        if self._is_on and (count := self._count - self._singles) > 0:
            log.say("jobs done", {"count": count, "seconds": round(now - self._since, 3)})
        is_busy = self._count > _MOST and now < self._until + _SECOND
        self._singles = 0 if is_busy else _MOST
        self._count, self._since, self._until = 0, now, now + _SECOND
