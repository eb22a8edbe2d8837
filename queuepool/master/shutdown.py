"""A pool's shutdown: how long jobs may still run, and how long the steward may settle after the last of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from queuepool.board.board import Header, Role
from queuepool.master.children import Child

#: seconds that the steward may settle after the last worker has exited
_SETTLE = 5.0
#: seconds after which booting processes are killed when the first boot has failed
_BOOTING = 1.0
_log = logging.getLogger("queuepool")


class Shutdown:
    """One pool's shutdown. Times are monotonic seconds; ``stop_timeout`` 0 = no limit for running jobs."""

    def __init__(self, stop_timeout: float, header: Header) -> None:
        self._header = header
        self._stop_timeout = stop_timeout or float("inf")
        self._settle_until = float("inf")
        self._end_orphans_at = float("inf")
        self._awaits_orphans = False
        self._began = self._boots_until = float("inf")
        self.has_begun = False
        #: whether killed masters have left boards here whose living workers our steward has not yet counted
        self.has_uncounted = False
        #: whether a signal has asked for it, at the beginning or later
        self.is_asked = False
        self.kill_at = float("inf")
        #: the master's exit code
        self.code = 0

    def words(self, workers: Sequence[Child], *, at_once: bool) -> str:
        """What happens to the running jobs, for whoever waits for the end: call before ``begin``."""
        running = [one for child in workers for one in child.slot.running()]
        if not running:
            return "no job runs"
        if at_once:
            return f"running jobs go back to their queues ({len(running)})"
        now, most = time.monotonic(), self._stop_timeout
        longest = max(min(one.deadline - now, most) if one.deadline else most for one in running)
        limit = "however long that takes" if longest == float("inf") else f"in at most {max(longest, 0.0):.0f} s"
        return f"running jobs may finish ({len(running)}, {limit}); a further Ctrl-C (INT) stops at once"

    def begin(self, now: float, code: int = 0, *, at_once: bool = False) -> None:
        """Begin; later calls only repair the board. ``at_once``: running jobs go back to their queues, also later on.

        ``code`` is the master's exit code.
        """
        if not self.has_begun:
            self.has_begun = True
            self.code = code
            self._began = now
            self.kill_at = self._end_orphans_at = now + self._stop_timeout
        if at_once:
            self.kill_at, self._end_orphans_at = min(self.kill_at, now), min(self._end_orphans_at, now)
            self._boots_until = min(self._boots_until, now)
        self._header.end_orphans_at = self._end_orphans_at
        self._header.stop_asked = int(self.is_asked)

    def shorten(self, now: float) -> None:
        """No worker has become ready: wait for booting processes and the steward only briefly.

        Workers of killed masters are not concerned: they may run on.
        """
        self.kill_at = min(self.kill_at, now + _BOOTING)
        self._settle_until = min(self._settle_until, now + _BOOTING)
        self._boots_until = min(self._boots_until, now)

    @property
    def has_orphans(self) -> bool:
        """Whether the steward last counted workers of killed masters: only a steward ends and settles them."""
        return self._header.orphans > 0

    @property
    def needs_steward(self) -> bool:
        """Whether there are orphans, or may be: a steward that boots would end by the signal, before it has counted."""
        return self.has_orphans or self.has_uncounted

    def awaits_orphans(self, now: float) -> bool:
        """Whether it waits for workers of killed masters, which the steward counts: they may run as long as our own."""
        awaited, self._awaits_orphans = self._awaits_orphans, self.has_orphans and now < self._end_orphans_at
        if self._awaits_orphans:
            self._settle_until = float("inf")
        if self._awaits_orphans and not awaited:
            _log.info("stopping: waiting for workers of killed masters, count=%d", self._header.orphans)
        return self._awaits_orphans

    def awaits_boot(self, steward: Child | None, now: float) -> bool:
        """Whether it waits for a needed steward that was importing its listeners when the stop began.

        ``boot_timeout`` limits that; its successors, if it dies, have no more time than any other.
        """
        is_booting = bool(steward and not steward.is_ready and steward.forked_at < self._began)
        awaited = is_booting and now < self._boots_until
        if awaited:
            self._settle_until = float("inf")
        return awaited

    def workers_have_left(self, now: float) -> bool:
        """Call when all these workers have exited: whether the steward may still settle their jobs."""
        self._settle_until = min(self._settle_until, now + _SETTLE)
        return now < self._settle_until

    def is_overdue(self, role: Role, now: float) -> bool:
        """Whether this process should have exited by now."""
        return now >= (self.kill_at if role == Role.WORKER else self._settle_until)
