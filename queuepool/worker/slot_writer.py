"""A worker's place: its slot on the board, its alarm, and its line in ``ps``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from queuepool.board.board import Slot, State
from queuepool.board.held_jobs import Stage
from queuepool.errors import StoreError
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.unix import proc
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.plan import Plan

#: seconds that a worker's resident memory is taken to be what it was
_RSS_LASTS = 0.05
#: seconds by which a wait may end too late, a silent store included
_LATE = 4.0


class SlotWriter:
    """Written by its worker alone; everybody may read the slot. ``stall`` is how long a round may take."""

    def __init__(self, slot: Slot, pool: str, alarm: Alarm, attention: WorkerSignals, *, stall: float) -> None:
        self.slot = slot
        self._hand = slot.hand
        self._pool = pool
        self._alarm = alarm
        self._attention = attention
        self._stall = stall
        self._rss_at = 0.0
        self._rss = 0.0
        self._has_run = True
        self._plan: Plan | None = None
        self._queue = ""
        self._about = ""
        self._succeeded = False
        self._number = 0
        self._lease_end = 0.0

    def show(self, state: State) -> None:
        """What the worker is doing, unless it runs a job."""
        if self.slot.state != state:
            self.slot.state = state
            self._title(f"{state.name.lower()} done={self.slot.done}")

    def alive(self) -> None:
        """No job runs, whatever is done next; until this is said again the master waits for ``stall`` seconds."""
        self.slot.lease_end = 0.0
        if self._has_run:
            self._alarm.disarm()
        self.slot.deadline = time.monotonic() + self._stall

    def waits(self, seconds: float) -> None:
        """A wait for jobs begins: it cannot hang as a round may, so it is missed sooner."""
        self.slot.deadline = time.monotonic() + seconds + min(self._stall, _LATE)

    def asking(self) -> float:
        """A reserve is about to be sent: from now on jobs may be ours without our knowing."""
        now = time.monotonic()
        self.slot.asked = now
        return now

    def holds(self, leases: Sequence[Lease], lease_end: float, done: Sequence[Lease] = ()) -> None:
        """A reserve was answered. What is done and not yet settled stays in the hand, before what is new.

        If the steward wants something back, the turn ends here even when nothing new has come.
        Raises ``StoreError`` when there is no room for it: the last hand stays, and so does that we have asked.
        """
        slot = self.slot
        slot.lease_end = 0.0
        if leases or done or self.is_wanted_back:
            try:
                slot.hold(leases, done)
            except OSError as error:  # large receipts lie beside the board
                raise StoreError(f"no room beside the board: {error.strerror}: these jobs wait") from error
        else:
            slot.hand.drop()
        self._hand = slot.hand
        if leases:
            self._lease_end = slot.lease_end = lease_end
        slot.asked = 0.0

    def turns_to(self, number: int) -> bool:
        """The ``number``-th held job, from 0, is next; ``False`` when the steward wants back what is not begun."""
        slot = self.slot
        # First say it, then look: the steward first says what it wants, waits, and then looks (steward/give_back.py).
        slot.at = self._number = number
        slot.lease_end = self._lease_end
        return not self.is_wanted_back

    @property
    def is_wanted_back(self) -> bool:
        """Whether the steward has taken, or is about to take, what waits in the hand."""
        return self.was_wanted_back(self.slot.turn)

    def was_wanted_back(self, turn: int) -> bool:
        """Likewise, of an earlier turn's hand, and of what was asked for meanwhile."""
        return self.slot.wanted_back == turn

    def begins(self, payload: Payload, queue: str, plan: Plan) -> None:
        """The held job is about to run; the kernel and the master know its deadline."""
        slot, now = self.slot, time.time()
        if plan is not self._plan or queue != self._queue:  # most jobs are like the one before
            self._describe(payload.name, queue, plan)
        slot.job_id, slot.attempt, slot.since = payload.id, payload.attempts, now
        self._succeeded = False
        self._hand.mark(self._number, Stage.RUNNING)
        slot.state = State.BUSY
        self._title(f"{self._about} id={_word(payload.id)} attempt={payload.attempts} since={_at(int(now))}")
        self.arm(plan.timeout)

    def _describe(self, name: str, queue: str, plan: Plan) -> None:
        shown = name if plan.handler else "unknown"  # a name that nobody registered is never shown
        self.slot.job, self.slot.queue, self.slot.policy = shown, queue, plan.text
        self._plan, self._queue = plan, queue
        self._about = f"busy queue={_word(queue)} job={_word(shown)}"

    def arm(self, timeout: float) -> None:
        """From now on ``timeout`` seconds, 0 = no limit: the kernel's alarm, and behind it the master."""
        self._has_run = True
        self.slot.deadline = time.monotonic() + timeout if timeout else 0.0
        self._alarm.arm(timeout)

    def succeeded(self) -> None:
        """Nothing but the receipt is left to be deleted, by us or by who buries us. Said twice, it counts once."""
        if not self._succeeded:
            self._succeeded = True
            self._hand.mark(self._number, Stage.DONE)
            self.slot.done += 1

    def ended(self) -> None:
        """The handler and its hook have returned: nobody need be killed when the lease ends, or is found settled.

        Its deadline stays for the moment until the next job begins, or until ``alive``.
        """
        self.slot.lease_end = 0.0

    def is_intact(self) -> bool:
        """Whether the worker's open files still are what they were: a job may have closed them all."""
        return self._alarm.is_intact()

    def is_open(self) -> bool:
        """As ``is_intact``, quicker: what a job has closed and opened anew is not seen."""
        return self._alarm.is_open()

    def settled_one(self, number: int | None = None) -> None:
        """Somebody else may hold it now; the last one that was begun, unless another is named."""
        self.slot.lease_end = 0.0
        self._hand.mark(self._number if number is None else number, Stage.SETTLED)

    def settled(self) -> None:
        """Nothing is held any more."""
        self.slot.lease_end = 0.0
        self._hand.drop()

    def rss(self) -> float:
        """Resident MB, at most 50 ms old."""
        if time.monotonic() - self._rss_at >= _RSS_LASTS:
            self.tidy()
        return self._rss

    def tidy(self) -> None:
        """If user code has run: signals are made ours again, whatever it did to them, and memory is looked up."""
        if self._has_run:
            self._attention.listen()
            self._alarm.prepare()
            self._rss_at, self._rss = time.monotonic(), proc.resident_mb(os.getpid())
            self.slot.rss = int(self._rss)
            self._has_run = False

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
