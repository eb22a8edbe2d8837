"""A worker's next jobs: reserved ahead while jobs are quick; one round trip also settles those that are done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.errors import StoreDown, StoreError
from queuepool.events import JobReserving
from queuepool.events.listeners import Listeners
from queuepool.payload.lease import Lease
from queuepool.settlement.outage import Outage
from queuepool.settlement.settler import Settler
from queuepool.stores.contract import QueueStore, Reservation
from queuepool.worker.membership import Membership
from queuepool.worker.prefetch_size import PrefetchSize
from queuepool.worker.reservation_reports import Reports
from queuepool.worker.slot_writer import SlotWriter

#: seconds that a held job may have waited and still be started
_FRESH = 1.0


class _Asked(NamedTuple):
    """A reserve that was sent: when (monotonic seconds), what it settles, and what reads its reply."""

    at: float
    done: list[Lease]
    answer: Callable[[], Reservation]


class Prefetch:
    """The jobs that a worker holds: some waiting to be started, some done and waiting to be deleted.

    When half of a batch has been started, the next one is requested. Methods may raise ``StoreDown``; what is held
    then stays as it is.
    """

    def __init__(
        self,
        pool: PoolSettings,
        store: QueueStore,
        settler: Settler,
        slot_writer: SlotWriter,
        outage: Outage,
        listeners: Listeners,
        pace: PrefetchSize,
        membership: Membership,
    ) -> None:
        self._pool = pool
        self._store = store
        self._settler = settler
        self._slot_writer = slot_writer
        self.reports = Reports(listeners, outage)
        self._listeners = listeners
        self._pace = pace
        self._membership = membership
        self._served: Sequence[str] = ()
        self._waiting: deque[tuple[int, Lease]] = deque()
        self._held_since = 0.0
        self._done: list[Lease] = []
        self._asked: _Asked | None = None
        #: the number of waiting jobs at which the next batch is requested; 0 = not before none waits
        self._asks_at = 0
        #: the steward may have settled or given back what we held; it goes by our tag, which is therefore spent
        self._overtaken = False
        #: seconds until the first job is due, if the last reserve brought none; ``None``: none waits
        self.next_due: float | None = None

    def next_job(self, queues: Sequence[str]) -> Lease | None:
        """The next job, ready to be started; ``None`` if there is none."""
        if queues != self._served:
            self.let_go()  # a reserve can settle only what came from the queues it serves
            self._served = queues
        if 0 < len(self._waiting) <= self._asks_at:
            self._ask_ahead(queues)
        while self._waiting or self._hold_reply_ahead() or self._reserve(queues):
            if lease := self.next_held():
                return lease
            self._put_back()
        return None

    def next_held(self) -> Lease | None:
        """The next held job; ``None`` if there is none, or if ``next_job`` must deal with what is held."""
        if len(self._waiting) <= self._asks_at:
            return None
        number, lease = self._waiting[0]
        if not self._slot_writer.turns_to(number) or time.monotonic() - self._held_since >= _FRESH:
            return None
        self._waiting.popleft()
        return lease

    def took(self, lease: Lease, seconds: float) -> None:
        """This job ran for ``seconds``, whatever its outcome."""
        self._pace.took(seconds, len(lease.receipt))

    def is_done(self, lease: Lease) -> None:
        """Only the job's receipt is left: delete it with the next reserve."""
        self._done.append(lease)

    def let_go(self) -> None:
        """Delete what is done and give back what was not started: nothing is held any more."""
        self._put_back()
        self._settler.delete(self._done)
        self._done = []
        self._slot_writer.settled()
        self._settler.emit_noted()

    def reclaim(self) -> None:
        """If the last reserve got no reply, give back what it took before sending the next command."""
        if self._slot_writer.slot.reserve_sent_at:
            self._membership.renew(self._done)

    def _put_back(self) -> None:
        """Give back what was not started, in order. A batch requested ahead need not be written on the board first."""
        ahead = self._reply_ahead()
        leases = [lease for _, lease in self._waiting] + (ahead.leases if ahead else [])
        self._settler.give_back_unstarted(leases)
        while self._waiting:
            self._slot_writer.settled_one(self._waiting.pop()[0])
        self._overtaken = self._overtaken or self._slot_writer.is_wanted_back
        if ahead:
            self._slot_writer.slot.reserve_sent_at = 0.0
            self.reports.tell(ahead, unsure=self._overtaken)
        self._settler.emit_noted()

    def _ask_ahead(self, queues: Sequence[str]) -> None:
        """Before the batch is used up: delete what is done so far, and request the next jobs."""
        self._asks_at = 0
        if send := self._store.reserve_ahead:
            with suppress(StoreDown):  # what is held needs no store; the board still shows the request
                at = self._begin_asking(queues)
                answer = send(queues, self._membership.tag, self._pace.ahead(), self._done)
                self._asked, self._done = _Asked(at, self._done, answer), []

    def _reply_ahead(self) -> Reservation | None:
        """The reply to a request ahead; ``None`` if none was sent or it got no reply."""
        if not self._asked:
            return None
        asked, self._asked = self._asked, None
        try:
            return asked.answer()
        except StoreError:  # the next reserve finds out why
            self._done = [*asked.done, *self._done]
            return None

    def _hold_reply_ahead(self) -> bool:
        """Hold the jobs requested ahead; ``False`` if there are none."""
        if self._slot_writer.is_wanted_back:
            self._put_back()
        if not self._asked:
            return False
        at, turn, reservation = self._asked.at, self._slot_writer.slot.hand_number, self._reply_ahead()
        if not reservation:
            return False
        if reservation.leases:
            self._hold(reservation, at, held_since=at)
        else:
            self._slot_writer.slot.reserve_sent_at = 0.0
        self._take_in(reservation, turn)
        return bool(reservation.leases)

    def _reserve(self, queues: Sequence[str]) -> bool:
        """One round trip: delete what is done, stage what is due, take the next jobs; ``False`` if there are none."""
        unsure = self._overtaken or bool(self._slot_writer.slot.reserve_sent_at)
        if unsure or self._membership.is_spent:
            if self._slot_writer.slot.reserve_sent_at:
                self._pace.begin_anew()  # a batch of that size may have found no room on the board
            self._membership.renew(self._done)
            self._overtaken = False
        self._membership.look_again(self._done)
        at, turn = self._begin_asking(queues), self._slot_writer.slot.hand_number
        reservation = self._store.reserve(queues, self._membership.tag, self._pace.ahead(), self._done)
        self._done = []
        self._hold(reservation, at, held_since=time.monotonic())
        self._take_in(reservation, turn, unsure=unsure)
        if not reservation.leases:
            self._pace.begin_anew()
        return bool(reservation.leases)

    def _take_in(self, reservation: Reservation, turn: int, *, unsure: bool = False) -> None:
        """Report what this reply brought, and give back what is held if the steward has wanted it back."""
        # Written first, then checked, as in SlotWriter.turns_to: a slow reply may look like a stuck job.
        self._overtaken = self._slot_writer.was_wanted_back(turn)
        self.reports.tell(reservation, unsure=unsure or self._overtaken)
        if self._overtaken:
            self._put_back()

    def _begin_asking(self, queues: Sequence[str]) -> float:
        if self._listeners.wants(JobReserving):
            self._listeners.emit(JobReserving(tuple(queues)))
        try:
            self._store.reach()  # if nothing could be sent, there is nothing to give back
        except StoreDown:
            self._overtaken = True  # another store may answer next, where another worker has our tag
            raise
        # The lease is counted from before the request: it never ends earlier than we believe.
        self._membership.used_at = self._slot_writer.asking()
        return self._membership.used_at

    def _hold(self, reservation: Reservation, at: float, held_since: float) -> None:
        leases = reservation.leases
        self._slot_writer.holds(leases, at + self._pool.connection.retry_after, self._done)
        self._waiting.extend(enumerate(leases, start=len(self._done)))
        self._held_since = held_since
        self.next_due = reservation.next_due
        # Fewer than requested means that there were no more.
        self._asks_at = len(leases) // 2 if len(leases) == self._pace.wanted and self._store.reserve_ahead else 0
