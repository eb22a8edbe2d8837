"""The deadlines of jobs that run side by side: each job's own on the loop, and the kernel's behind the earliest one.

At its deadline a job is cancelled, so that its ``finally`` blocks run. If it still runs ``grace`` seconds later, since
it swallowed that or blocks the loop, the alarm ends the process.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable

#: uvloop's timers are as exact as this, in seconds
_EXACT = 0.001


class Deadline:
    """One job's deadline: ``at`` in monotonic seconds. Once it has ``passed``, its job has been cancelled."""

    __slots__ = ("at", "cancel", "passed", "timeout")

    def __init__(self, at: float, timeout: float, cancel: Callable[[], object]) -> None:
        self.at = at
        self.timeout = timeout
        self.cancel = cancel
        self.passed = False


class Deadlines:
    """The deadlines of one loop. ``arm`` is called with the time of the kernel's alarm (monotonic), 0.0 = none.

    Jobs with the same timeout end in the order in which they began, so one queue for each timeout keeps them sorted.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, grace: float, arm: Callable[[float], object]) -> None:
        self._loop = loop
        self._grace = grace
        self._arm = arm
        self._alarm = 0.0
        self._queues: dict[float, OrderedDict[Deadline, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def begin(self, timeout: float, cancel: Callable[[], object]) -> Deadline:
        """A job begins that is to be cancelled after ``timeout`` seconds; 0 = never."""
        deadline = Deadline(time.monotonic() + timeout if timeout else math.inf, timeout, cancel)
        if timeout:
            queue = self._queues.setdefault(timeout, OrderedDict())
            queue[deadline] = None
            if len(queue) == 1:  # behind another one it is not the earliest
                self._arm_alarm()
            self._arm_timer(deadline.at)  # those before it may have been cancelled and run on
        return deadline

    def end(self, deadline: Deadline) -> None:
        """Nothing of the job runs any more."""
        if not deadline.timeout:
            return
        queue = self._queues[deadline.timeout]
        is_first = next(iter(queue)) is deadline
        del queue[deadline]
        if not queue:
            del self._queues[deadline.timeout]
        # At once: an alarm that is left at this job's time would kill the others if the loop were blocked just then.
        if is_first:
            self._arm_alarm()

    def _arm_alarm(self) -> None:
        first = min((next(iter(queue)).at for queue in self._queues.values()), default=None)
        alarm = 0.0 if first is None else first + self._grace
        if alarm != self._alarm:
            self._alarm = alarm
            self._arm(alarm)

    def _arm_timer(self, at: float) -> None:
        """Look again then, or earlier: unlike the alarm, the timer may find that a job has ended long ago."""
        if at < self._timer_at:
            if self._timer:
                self._timer.cancel()
            self._timer, self._timer_at = self._loop.call_later(at - time.monotonic(), self._look), at

    def _look(self) -> None:
        self._timer, self._timer_at = None, math.inf
        now = time.monotonic() + _EXACT
        for queue in list(self._queues.values()):
            for deadline in list(queue):
                if deadline.at > now:
                    self._arm_timer(deadline.at)
                    break
                if not deadline.passed:
                    deadline.passed = True
                    deadline.cancel()
