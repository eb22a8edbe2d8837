"""When a worker leaves: a pure function from facts to a reason with its exit code."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from enum import StrEnum

from queuepool.unix.exit_codes import LEFT, MEMORY

_JITTER = 0.1


class StopReason(StrEnum):
    """Why a worker left; Laravel's names (WorkerStopReason.php, 13.x) where it has them."""

    #: by a stop signal: the pool stops or shrinks
    STOPPED = "stop_signal"
    #: the same while the store was away; the steward settles what it held
    INTERRUPTED = "interrupted"
    MEMORY = "memory"
    EMPTY = "empty"
    EMPTY_FOR = "empty_for"
    MAX_TIME = "max_time"
    MAX_JOBS = "max_jobs"
    ONCE = "once"
    RESTART = "restart_signal"
    ORPHANED = "orphaned"

    @property
    def code(self) -> int:
        return MEMORY if self is StopReason.MEMORY else LEFT


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long one worker lives; 0 = no limit. ``memory`` in MB, ``until`` in monotonic seconds.

    ``stop_when_empty_for``: seconds without a job.
    """

    memory: float
    max_jobs: int
    until: float
    once: bool = False
    stop_when_empty: bool = False
    stop_when_empty_for: float = 0.0

    @classmethod
    def drawn(
        cls,
        *,
        memory: float,
        max_jobs: int,
        max_time: float,
        once: bool = False,
        stop_when_empty: bool = False,
        stop_when_empty_for: float = 0.0,
    ) -> Limits:
        """Limits with jobs and time up to a tenth lower, so that workers started together do not leave together."""
        less = 1 - random.random() * _JITTER
        return cls(
            memory=memory,
            max_jobs=max(1, round(max_jobs * less)) if max_jobs else 0,
            until=time.monotonic() + max_time * less if max_time else 0.0,
            once=once,
            stop_when_empty=stop_when_empty,
            stop_when_empty_for=stop_when_empty_for,
        )

    @property
    def is_leaving_when_empty(self) -> bool:
        return self.once or self.stop_when_empty

    def may_idle(self, idle: float) -> float:
        """Seconds that a worker without a job for ``idle`` seconds may still wait for one."""
        return max(self.stop_when_empty_for - idle, 0.0) if self.stop_when_empty_for else math.inf

    def is_last(self, jobs: int) -> bool:
        """Whether no job may follow after this many."""
        return (jobs > 0 and self.once) or 0 < self.max_jobs <= jobs

    def reached(self, *, jobs: int, rss: float, found_none: bool, now: float, idle: float = 0.0) -> StopReason | None:
        """The first reason to leave, in Laravel's order; ``idle``: seconds since the start or the last job.

        Source: Worker.php, stopIfNecessary (13.x).
        """
        if self.memory and jobs and rss >= self.memory:  # before its first job, a successor would be as large
            return StopReason.MEMORY
        if self.stop_when_empty and found_none:
            return StopReason.EMPTY
        if found_none and not self.may_idle(idle):
            return StopReason.EMPTY_FOR
        if self.once and (jobs or found_none):
            return StopReason.ONCE
        if self.until and now >= self.until and (jobs or found_none):  # it has looked for a job at least once
            return StopReason.MAX_TIME
        if self.is_last(jobs):
            return StopReason.MAX_JOBS
        return None
