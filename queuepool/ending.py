"""How a stop goes: until when jobs may still run, and how long the steward may settle after the last of them."""

from __future__ import annotations

from queuepool.board import Role

#: seconds that the steward may still settle after the last worker has left
_SETTLE = 5.0


class Ending:
    """Of one pool. Times are monotonic seconds; ``stop_timeout`` 0 = running jobs may take their time."""

    def __init__(self, stop_timeout: float) -> None:
        self._patience = stop_timeout or float("inf")
        self._settle_until = float("inf")
        self.has_begun = False
        self.kill_at = float("inf")
        #: the master's exit code
        self.code = 0

    def begin(self, now: float) -> None:
        """Counts once."""
        if not self.has_begun:
            self.has_begun = True
            self.kill_at = now + self._patience

    def hurry(self, now: float) -> None:
        """Running jobs go back to their queues."""
        self.kill_at = min(self.kill_at, now)

    def workers_have_left(self, now: float) -> bool:
        """Whether the steward may still settle what they held."""
        self._settle_until = min(self._settle_until, now + _SETTLE)
        return now < self._settle_until

    def is_overdue(self, role: Role, now: float) -> bool:
        """Whether this process should have left by now."""
        return now >= (self.kill_at if role == Role.WORKER else self._settle_until)
