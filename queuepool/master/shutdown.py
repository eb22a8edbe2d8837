"""How a stop goes: until when jobs may still run, and how long the steward may settle after the last of them."""

from __future__ import annotations

from queuepool.board.board import Role

#: seconds that the steward may still settle after the last worker has left
_SETTLE = 5.0
#: seconds after which what still boots is killed when the first boot has failed
_BOOTING = 1.0


class Shutdown:
    """Of one pool. Times are monotonic seconds; ``stop_timeout`` 0 = running jobs may take their time."""

    def __init__(self, stop_timeout: float) -> None:
        self._patience = stop_timeout or float("inf")
        self._settle_until = float("inf")
        self.has_begun = False
        self.kill_at = float("inf")
        #: the master's exit code
        self.code = 0

    def begin(self, now: float, code: int = 0) -> None:
        """Counts once; ``code`` is the master's exit code."""
        if not self.has_begun:
            self.has_begun = True
            self.code = code
            self.kill_at = now + self._patience

    def hurry(self, now: float) -> None:
        """Running jobs go back to their queues."""
        self.kill_at = min(self.kill_at, now)

    def cut_short(self, now: float) -> None:
        """Nobody has come to work: those that still boot, and the steward, are not waited for."""
        self.kill_at = min(self.kill_at, now + _BOOTING)
        self._settle_until = min(self._settle_until, now + _BOOTING)

    def workers_have_left(self, now: float) -> bool:
        """Whether the steward may still settle what they held."""
        self._settle_until = min(self._settle_until, now + _SETTLE)
        return now < self._settle_until

    def is_overdue(self, role: Role, now: float) -> bool:
        """Whether this process should have left by now."""
        return now >= (self.kill_at if role == Role.WORKER else self._settle_until)
