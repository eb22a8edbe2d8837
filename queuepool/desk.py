"""A worker's place: its slot on the board, its alarm, and its line in ``ps``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from queuepool import proc
from queuepool.board import Slot, State
from queuepool.hand import Stage
from queuepool.payload import Payload
from queuepool.signals import Alarm, Attention
from queuepool.stores.base import Lease
from queuepool.verdict import Policy

#: seconds that a worker's resident memory is taken to be what it was
_RSS_LASTS = 0.05
#: seconds by which a wait may end too late, a silent store included
_LATE = 4.0


class Desk:
    """Written by its worker alone; everybody may read the slot. ``stall`` is how long a round may take."""

    def __init__(self, slot: Slot, pool: str, alarm: Alarm, attention: Attention, *, stall: float) -> None:
        self.slot = slot
        self._pool = pool
        self._alarm = alarm
        self._attention = attention
        self._stall = stall
        self._rss_at = 0.0
        self._rss = 0.0
        self._kind: tuple[str, str, Policy] | None = None
        self._about = ""
        self._succeeded = False

    def show(self, state: State) -> None:
        """What the worker is doing, unless it runs a job."""
        if self.slot.state != state:
            self.slot.state = state
            self._title(f"{state.name.lower()} done={self.slot.done}")

    def alive(self) -> None:
        """A round begins; until the next one the master waits for ``stall`` seconds."""
        self.slot.deadline = time.monotonic() + self._stall

    def waits(self, seconds: float) -> None:
        """A wait for jobs begins: it cannot hang as a round may, so it is missed sooner."""
        self.slot.deadline = time.monotonic() + seconds + min(self._stall, _LATE)

    def asking(self) -> float:
        """A reserve is about to be sent: from now on jobs may be ours without our knowing."""
        now = time.monotonic()
        self.slot.asked = now
        return now

    def holds(self, leases: Sequence[Lease], lease_end: float) -> None:
        """The reserve was answered."""
        slot = self.slot
        slot.lease_end = 0.0
        slot.hand.hold(leases)
        if leases:
            slot.turn += 1
            slot.lease_end = lease_end
        slot.asked = 0.0

    def begins(self, payload: Payload, queue: str, policy: Policy, timeout: float, *, known: bool) -> None:
        """The held job is about to run; the kernel and the master know its deadline.

        ``known``: a handler is registered under its name; other names are never shown.
        """
        slot, now = self.slot, time.time()
        kind = (payload.name if known else "unknown", queue, policy)
        if kind != self._kind:  # most jobs are like the one before
            slot.job, slot.queue, slot.policy = kind[0], queue, policy.to_text()
            self._kind, self._about = kind, f"queue={_word(queue)} job={_word(kind[0])}"
        slot.job_id, slot.attempt, slot.since = payload.id, payload.attempts, now
        self._succeeded = False
        slot.hand.mark(0, Stage.RUNNING)
        slot.state = State.BUSY
        self._title(f"busy {self._about} id={_word(payload.id)} attempt={payload.attempts} since={_at(int(now))}")
        self.arm(timeout)

    def arm(self, timeout: float) -> None:
        """From now on ``timeout`` seconds, 0 = no limit: the kernel's alarm, and behind it the master."""
        self.slot.deadline = time.monotonic() + timeout if timeout else 0.0
        self._alarm.arm(timeout)

    def succeeded(self) -> None:
        """Nothing but the receipt is left to be deleted, by us or by who buries us. Said twice, it counts once."""
        if not self._succeeded:
            self._succeeded = True
            self.slot.hand.mark(0, Stage.DONE)
            self.slot.done += 1

    def ended(self) -> None:
        """The handler and its hook have returned: nobody need be killed when the lease ends, or is found settled."""
        self.slot.lease_end = 0.0
        self._alarm.disarm()
        self.alive()

    def is_intact(self) -> bool:
        """Whether the worker's open files still are what they were: a job may have closed them all."""
        return self._alarm.is_intact()

    def settled(self) -> None:
        """Nothing is held any more."""
        self.slot.lease_end = 0.0
        self.slot.hand.drop()

    def rss(self) -> float:
        """Resident MB, at most 50 ms old. As often, signals are made ours again, whatever jobs have done to them."""
        now = time.monotonic()
        if now - self._rss_at >= _RSS_LASTS:
            self._attention.listen()
            self._alarm.prepare()
            self._rss_at, self._rss = now, proc.resident_mb(os.getpid())
            self.slot.rss = int(self._rss)
        return self._rss

    def leave(self) -> None:
        """The last word: an exit without it counts as a death."""
        self.slot.state = State.STOPPING
        self.slot.left = 1

    def _title(self, rest: str) -> None:
        proc.show(f"queuepool: worker {self.slot.number} [{self._pool}] {rest}")


@lru_cache(maxsize=1)
def _at(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _word(text: str) -> str:
    """A value without spaces, so that the title stays a row of words."""
    return "_".join(text.split()) or "-"
