"""The jobs that a worker holds, each with its stage: in memory, and on the board for the steward if it dies."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from queuepool.board.board import Slot
from queuepool.board.held_jobs import Stage
from queuepool.errors import StoreError
from queuepool.payload.lease import Lease

#: seconds that a held job may wait and still be started
_FRESH = 1.0
#: plain numbers take a third less time to write than enum members, and each job writes all of them
_READING, _RUNNING, _DONE = int(Stage.READING), int(Stage.RUNNING), int(Stage.DONE)


class HeldBatch:
    """The current batch: jobs done but not yet deleted, the one turned to last, and those waiting to be started.

    Used by the slot's worker alone; every process may read the slot. Each change is written on the board first.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._held = slot.hand
        #: jobs of which only the receipt is left to delete
        self.done: list[Lease] = []
        #: jobs not started, each with its number on the board
        self.waiting: deque[tuple[int, Lease]] = deque()
        self._since = 0.0
        self._lease_end = 0.0
        self._shows_lease = False
        #: the number on the board of the job turned to last
        self.number = 0
        #: how many have succeeded; reading it back from the board would take as long as writing it
        self._succeeded = 0

    def requesting(self) -> float:
        """A reserve is about to be sent: jobs may be ours before we know. Returns the time (monotonic seconds)."""
        now = time.monotonic()
        self._slot.reserve_sent_at = now
        return now

    def replied(self) -> None:
        """The reply was read, so it is known what the last reserve took."""
        self._slot.reserve_sent_at = 0.0

    def deleted(self) -> None:
        """The done jobs are deleted, and none waits: nothing is held, but a reserve may be under way."""
        self.done = []
        self._held.drop()

    @property
    def awaits_reply(self) -> bool:
        """Whether a reserve was sent but its reply was not read, so it is unknown what it took."""
        return bool(self._slot.reserve_sent_at)

    def hold(self, leases: Sequence[Lease], lease_end: float, since: float) -> None:
        """A reserve was answered: begin the next batch, with the jobs done so far and these.

        ``lease_end``, and ``since`` when they wait, are monotonic seconds. If the steward wants something back, the old
        batch ends here even if nothing new has come. Raises ``StoreError`` if there is no room; the old batch and the
        mark of the open reserve then stay.
        """
        slot = self._slot
        self.ended()
        if leases or self.done or self.is_wanted_back:
            try:
                slot.hold(leases, self.done)
            except OSError as error:  # large receipts are files beside the board
                raise StoreError(f"no room beside the board: {error.strerror}: these jobs wait") from error
        else:
            slot.hand.drop()
        self._held = slot.hand
        if leases:
            self._lease_end = slot.lease_end = lease_end
        slot.reserve_sent_at = 0.0
        self.waiting.extend(enumerate(leases, start=len(self.done)))
        self._since = since

    def next_job(self) -> Lease | None:
        """Turn to the next waiting job; ``number`` is then its own.

        ``None`` if the steward wants back what was not started, or if the job has waited for too long.
        """
        number, lease = self.waiting[0]
        # Write first, then check: the steward writes what it wants, waits, and then checks (steward/give_back.py).
        self._slot.current_index = self.number = number
        self._show_lease()
        if self.is_wanted_back or time.monotonic() - self._since >= _FRESH:
            return None
        self.waiting.popleft()
        return lease

    @property
    def turn(self) -> int:
        """The batch's number on the board."""
        return self._slot.hand_number

    @property
    def is_wanted_back(self) -> bool:
        """Whether the steward has taken, or is about to take, the held jobs not yet started."""
        return self.was_wanted_back(self._slot.hand_number)

    def was_wanted_back(self, turn: int) -> bool:
        """The same for an earlier batch, and for what was requested meanwhile."""
        return self._slot.wanted_back == turn

    def reads(self, number: int) -> None:
        """The payload of this job is about to be read: if the worker dies now, that may be the cause."""
        self._held.mark(number, _READING)

    def has_read(self, number: int) -> None:
        """It has been read. The store is asked before the job runs; a death there is not the payload's fault."""
        self._held.mark(number, Stage.RESERVED)

    def started(self, number: int) -> None:
        """This job is about to run."""
        if not self._shows_lease:  # the store was asked first, or something was logged
            self._show_lease()
        self._held.mark(number, _RUNNING)

    def succeeded(self, number: int) -> None:
        """This job must not run again: only its settlement is left, by us or, if we die, by the steward."""
        self._held.mark(number, _DONE)
        self._succeeded += 1
        self._slot.done = self._succeeded

    def ended(self) -> None:
        """No job runs, so the worker need not be killed when the lease ends or is found settled."""
        self._shows_lease = False
        self._slot.lease_end = 0.0

    def _show_lease(self) -> None:
        """From now on the steward renews the lease, and the master kills the worker when it ends all the same."""
        self._shows_lease = True
        self._slot.lease_end = self._lease_end

    def settled(self, number: int) -> None:
        """Another worker may hold this job now."""
        self._held.mark(number, Stage.SETTLED)

    def breaks(self) -> None:
        """The worker ends itself, as a job has closed its files; only of several that run this has to be said."""

    def gave_back(self) -> None:
        """Other workers may hold the waiting jobs now."""
        self.ended()
        while self.waiting:
            self.settled(self.waiting.pop()[0])

    def drop(self) -> None:
        """Hold nothing any more: done jobs have been deleted."""
        self.done = []
        self.ended()
        self._held.drop()
