"""When a dead process is replaced: at once, unless deaths of its kind follow one another; then later and later."""

from __future__ import annotations

import os
import signal
from collections import defaultdict

from queuepool.board import Killed, Role, State
from queuepool.children import Child

#: seconds below which a life without a finished job was a short one
_SHORT = 5.0
#: a steward or template has no jobs to show: one that worked for a moment is fine
_MOMENT = 1.0
_KINDS = (Role.WORKER, Role.STEWARD, Role.TEMPLATE)
_MOST_DOUBLINGS = 16


class Rests:
    """Seconds to wait before the next try: none for the first ``free`` failures, then twice as long each time."""

    def __init__(self, shortest: float = 0.5, longest: float = 60.0, free: int = 0) -> None:
        self._shortest = shortest
        self._longest = longest
        self._free = free
        self._failures = 0
        self._until = 0.0
        #: monotonic; when the first of these failures was, infinity = there is none
        self.since = float("inf")

    def failed(self, now: float) -> float:
        """One more; gives the seconds of rest. Many at once count as one."""
        if now >= self._until:
            self.since = min(self.since, now)
            self._failures += 1
            doublings = self._failures - self._free - 1
            rest = min(self._shortest * 2 ** min(doublings, _MOST_DOUBLINGS), self._longest) if doublings >= 0 else 0.0
            self._until = now + rest
        return self._until - now

    def succeeded(self) -> None:
        self._failures = 0
        self.since = float("inf")

    def is_over(self, now: float) -> bool:
        return now >= self._until


class Respawn:
    """Who has to rest. ``give_up``: seconds after which workers that never come to work are hopeless; 0 = never."""

    def __init__(self, give_up: float = 0.0) -> None:
        self._give_up = give_up or float("inf")
        self._boots = {role: Rests() for role in _KINDS}
        # Who is killed while it boots has not failed: the next one may come through.
        self._killed = {role: Rests(0.1, free=5) for role in _KINDS}
        # Of a number's workers that died young in a job: `max_crashes` ends that job by job. Not for long, as good jobs
        # wait behind the bad ones.
        self._loops: dict[int, Rests] = defaultdict(lambda: Rests(0.1, 1.0, free=5))

    def came(self, child: Child) -> None:
        """A child has come to work: booting is possible."""
        self._boots[child.role].succeeded()
        self._killed[child.role].succeeded()

    def failed_to_fork(self, role: Role, now: float) -> float:
        """The seconds of rest."""
        return self._boots[role].failed(now)

    def died(self, child: Child, now: float) -> tuple[float, str]:
        """The seconds of rest before its successor is forked, and why in words; 0.0 when it may come at once."""
        if child.told:
            return 0.0, ""
        if not child.is_ready:
            rests = self._killed if _was_killed(child.status) else self._boots
            return rests[child.role].failed(now), "never came to work"
        if child.role != Role.WORKER:
            return (self._boots[child.role].failed(now) if now < child.born + _MOMENT else 0.0), "died at once"
        return self._looped(child, now), "died young again"

    def _looped(self, child: Child, now: float) -> float:
        slot = child.slot
        if slot.done or slot.left or child.killed == Killed.STOP or now >= child.born + _SHORT:
            self._loops.pop(child.number, None)
            return 0.0
        if slot.state != State.BUSY:
            return 0.0  # killed by somebody, for nothing
        return self._loops[child.number].failed(now)

    def is_over(self, role: Role, number: int, now: float) -> bool:
        """Whether this place may be filled now."""
        rested = number not in self._loops or self._loops[number].is_over(now)
        return rested and self._boots[role].is_over(now) and self._killed[role].is_over(now)

    def is_hopeless(self, now: float, *, has_template: bool = False) -> bool:
        """Whether no worker, or no steward, has come to work for so long that none will.

        ``has_template``: one forks workers, so it is no matter that the next one does not come.
        """
        kinds = [role for role in _KINDS if not (has_template and role == Role.TEMPLATE)]
        rests = [tries[role] for tries in (self._boots, self._killed) for role in kinds]
        return now >= min(each.since for each in rests) + self._give_up


def _was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
