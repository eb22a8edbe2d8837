"""What a worker shows of itself: its slot on the board, its alarm, and its line in ``ps``."""

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

#: seconds for which a measurement of resident memory is reused
_RSS_LASTS = 0.05
#: seconds by which a wait may end late, even with a silent store
_LATE = 4.0


class SlotWriter:
    """Used by the slot's worker alone; every process may read the slot. ``stall``: seconds a round may take."""

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
        """Show the state of a worker that runs no job."""
        if self.slot.state != state:
            self.slot.state = state
            self._title(f"{state.name.lower()} done={self.slot.done}")

    def alive(self) -> None:
        """No job runs: disarm the alarm. The next call must come within ``stall`` seconds, else the master kills us."""
        self.slot.lease_end = 0.0
        if self._has_run:
            self._alarm.disarm()
        self.slot.deadline = time.monotonic() + self._stall

    def waits(self, seconds: float) -> None:
        """A wait of ``seconds`` for jobs begins. It cannot take as long as a round may, so its deadline is earlier."""
        self.slot.deadline = time.monotonic() + seconds + min(self._stall, _LATE)

    def asking(self) -> float:
        """A reserve is about to be sent: jobs may be ours before we know. Returns the time (monotonic seconds)."""
        now = time.monotonic()
        self.slot.reserve_sent_at = now
        return now

    def holds(self, leases: Sequence[Lease], lease_end: float, done: Sequence[Lease] = ()) -> None:
        """A reserve was answered: write down the new batch. Done jobs not yet settled stay, before the new ones.

        If the steward wants something back, the old batch ends here even if nothing new has come. Raises
        ``StoreError`` if there is no room: the old batch and the mark of the open reserve then stay.
        """
        slot = self.slot
        slot.lease_end = 0.0
        if leases or done or self.is_wanted_back:
            try:
                slot.hold(leases, done)
            except OSError as error:  # large receipts are files beside the board
                raise StoreError(f"no room beside the board: {error.strerror}: these jobs wait") from error
        else:
            slot.hand.drop()
        self._hand = slot.hand
        if leases:
            self._lease_end = slot.lease_end = lease_end
        slot.reserve_sent_at = 0.0

    def turns_to(self, number: int) -> bool:
        """The ``number``-th held job, from 0, is next; ``False`` if the steward wants back what was not started."""
        slot = self.slot
        # Write first, then check: the steward writes what it wants, waits, and then checks (steward/give_back.py).
        slot.current_index = self._number = number
        slot.lease_end = self._lease_end
        return not self.is_wanted_back

    @property
    def is_wanted_back(self) -> bool:
        """Whether the steward has taken, or is about to take, the held jobs not yet started."""
        return self.was_wanted_back(self.slot.hand_number)

    def was_wanted_back(self, turn: int) -> bool:
        """The same of an earlier batch, and of what was requested meanwhile."""
        return self.slot.wanted_back == turn

    def begins(self, payload: Payload, queue: str, plan: Plan) -> None:
        """The held job is about to run: show it, and set its deadline for the kernel and the master."""
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
        shown = name if plan.handler else "unknown"  # an unregistered name is never shown
        self.slot.job, self.slot.queue, self.slot.policy = shown, queue, plan.text
        self._plan, self._queue = plan, queue
        self._about = f"busy queue={_word(queue)} job={_word(shown)}"

    def arm(self, timeout: float) -> None:
        """Set a deadline in ``timeout`` seconds, 0 = none: the kernel's alarm, and behind it the master."""
        self._has_run = True
        self.slot.deadline = time.monotonic() + timeout if timeout else 0.0
        self._alarm.arm(timeout)

    def succeeded(self) -> None:
        """Only the receipt is left to delete, by us or, after our death, by the steward. Idempotent."""
        if not self._succeeded:
            self._succeeded = True
            self._hand.mark(self._number, Stage.DONE)
            self.slot.done += 1

    def ended(self) -> None:
        """The handler and its hook have returned: no need to kill the worker when the lease ends or is found settled.

        The deadline stays until the next job begins, or until ``alive``.
        """
        self.slot.lease_end = 0.0

    def is_intact(self) -> bool:
        """Whether the worker's open files are still the same: a job may have closed them all."""
        return self._alarm.is_intact()

    def is_open(self) -> bool:
        """Like ``is_intact`` but quicker: misses files that a job has closed and opened anew."""
        return self._alarm.is_open()

    def settled_one(self, number: int | None = None) -> None:
        """Another worker may hold this job now: the ``number``-th held one, or the last one that was started."""
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
        """After user code has run: restore the signal handlers and the alarm, and measure memory."""
        if self._has_run:
            self._attention.listen()
            self._alarm.prepare()
            self._rss_at, self._rss = time.monotonic(), proc.resident_mb(os.getpid())
            self.slot.rss = int(self._rss)
            self._has_run = False

    def leave(self) -> None:
        """Mark a clean exit; an exit without this mark counts as a death."""
        self.slot.state = State.STOPPING
        self.slot.exited_cleanly = 1

    def _title(self, rest: str) -> None:
        proc.show(f"queuepool: worker {self.slot.number} [{self._pool}] {rest}")


@lru_cache(maxsize=1)
def _at(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _word(text: str) -> str:
    """A value without spaces, so that the title stays a row of words."""
    return "_".join(text.split()) or "-"
