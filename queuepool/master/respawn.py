"""When a dead process is replaced: at once, unless deaths of its kind follow one another; then later and later."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Container

from queuepool.board.board import Killed, Role, State
from queuepool.master.children import Child

#: seconds below which a life without a finished job was a short one
_SHORT = 5.0
#: a template has no jobs to show: one that worked for a moment is fine. A steward must live for longer than its first
#: rounds take, as what it finds in them may end it
_MOMENT, _STEADY = 1.0, 10.0
#: failures in a row with which the pool is called failing
_ROW = 2
_KINDS = (Role.WORKER, Role.STEWARD, Role.TEMPLATE)
_MOST_DOUBLINGS = 16


class Backoff:
    """Seconds to wait before the next try: none for the first ``free`` failures, then twice as long each time."""

    def __init__(self, shortest: float = 0.5, longest: float = 60.0, free: int = 0) -> None:
        self._shortest = shortest
        self._longest = longest
        self._free = free
        #: in a row
        self.failures = 0
        self._until = 0.0
        #: monotonic; when the first of these failures was, infinity = there is none
        self.since = float("inf")

    def failed(self, now: float) -> float:
        """One more; gives the seconds of rest. Many at once count as one."""
        if now >= self._until:
            self.since = min(self.since, now)
            self.failures += 1
            doublings = self.failures - self._free - 1
            rest = min(self._shortest * 2 ** min(doublings, _MOST_DOUBLINGS), self._longest) if doublings >= 0 else 0.0
            self._until = now + rest
        return self._until - now

    def succeeded(self) -> None:
        self.failures = 0
        self.since = float("inf")

    def is_over(self, now: float) -> bool:
        return now >= self._until


class Respawn:
    """Who has to rest. ``give_up``: seconds after which processes that never come to work are hopeless; 0 = never."""

    def __init__(self, give_up: float = 0.0) -> None:
        self._give_up = give_up or float("inf")
        self._boots = {role: Backoff() for role in _KINDS}
        # Who is killed while it boots has not failed: the next one may come through.
        self._killed = {role: Backoff(0.1, free=5) for role in _KINDS}
        # Of a number's workers that died young in a job: `max_crashes` ends that job by job. Not for long, as good jobs
        # wait behind the bad ones.
        self._loops: dict[int, Backoff] = defaultdict(lambda: Backoff(0.1, 1.0, free=5))
        #: whether a worker or a template has come to work since the start
        self.has_booted = False

    def begin_anew(self) -> None:
        """Other code is to come, which need not wait for the last one's failures."""
        self._boots[Role.WORKER], self._boots[Role.TEMPLATE] = Backoff(), Backoff()

    def came(self, child: Child) -> None:
        """A child has come to work: booting is possible."""
        if child.role != Role.STEWARD:
            self.has_booted = True
            self._boots[child.role].succeeded()
        self._killed[child.role].succeeded()

    def watch(self, steward: Child | None, now: float) -> None:
        """A steward that has lived for long enough makes up for those that did not."""
        if steward and steward.is_ready and now >= steward.born + _STEADY:
            self._boots[Role.STEWARD].succeeded()

    @property
    def is_failing(self) -> bool:
        """Whether the pool has no steward that lives."""
        return self._boots[Role.STEWARD].failures >= _ROW

    def failed_to_fork(self, role: Role, now: float) -> float:
        """The seconds of rest."""
        return self._boots[role].failed(now)

    def died(self, child: Child, now: float) -> tuple[float, str]:
        """The seconds of rest before its successor is forked, and why in words; 0.0 when it may come at once."""
        self.has_booted |= child.is_ready and child.role != Role.STEWARD  # and died before it was seen at work
        if child.told:
            return 0.0, ""
        if not child.is_ready:
            rests = self._killed if _was_killed(child.status) else self._boots
            return rests[child.role].failed(now), "never came to work"
        if child.role == Role.STEWARD:
            is_fine = child.was_killed or now >= child.born + _STEADY
            return (0.0 if is_fine else self._boots[child.role].failed(now)), "died young"
        if child.role == Role.TEMPLATE:
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

    def hopeless(self, now: float, ready: Container[Role]) -> Role | None:
        """The kind of process that the pool needs, and of which none has lived for so long that none will.

        ``ready``: the kinds that are at work. Workers go on without a template, but are of no use without a steward.
        """
        needed = (Role.STEWARD,) if Role.WORKER in ready else _KINDS
        for role in needed:
            since = min(self._boots[role].since, self._killed[role].since)
            if role not in ready and now >= since + self._give_up:
                return role
        return None


def _was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
