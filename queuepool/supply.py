"""Where a worker's next job comes from: reserved some ahead while they are quick, settled behind, in one round trip."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from queuepool.desk import Desk
from queuepool.events import JobQuarantined, JobReserving, LeaseLost, StoreRefused
from queuepool.listeners import Listeners
from queuepool.outage import Outage
from queuepool.pace import Pace
from queuepool.payload import decode
from queuepool.settings import PoolSettings
from queuepool.settle import Settler, facts_of
from queuepool.stores.base import UNDER_WAY, Lease, QueueStore, Reservation

#: seconds that a job may have waited in a hand, and still be begun
_FRESH = 1.0


class Supply:
    """The jobs that a worker holds: some waiting to be begun, some done and waiting to be deleted.

    All verbs may raise ``StoreDown``; what is in the hand then stays there, for the next try or for the steward.
    """

    def __init__(
        self,
        pool: PoolSettings,
        store: QueueStore,
        settler: Settler,
        desk: Desk,
        outage: Outage,
        listeners: Listeners,
        pace: Pace,
    ) -> None:
        self._pool = pool
        self._store = store
        self._settler = settler
        self._desk = desk
        self._outage = outage
        self._listeners = listeners
        self._pace = pace
        self._tag = 0
        self._served: Sequence[str] = ()
        self._waiting: deque[tuple[int, Lease]] = deque()
        self._held_since = 0.0
        self._done: list[Lease] = []
        self._problems: set[tuple[str, str]] = set()
        #: seconds to the first job, when the last reserve brought none; ``None``: none waits
        self.next_due: float | None = None

    def join(self) -> None:
        self._tag = self._desk.slot.tag = self._outage.insist(self._store.join)[0]

    @property
    def has_problems(self) -> bool:
        return bool(self._problems)

    def next_job(self, queues: Sequence[str]) -> Lease | None:
        """The next one, ready to be begun; ``None`` when there is none."""
        if queues != self._served:
            self.let_go()  # a reserve can settle only what came from the queues it serves
            self._served = queues
        while self._waiting or self._reserve(queues):
            if lease := self.next_held():
                return lease
            self._put_back()
        return None

    def next_held(self) -> Lease | None:
        """The next of those in hand; ``None`` when there is none, or ``next_job`` has to see to what is there."""
        if not self._waiting:
            return None
        number, lease = self._waiting[0]
        if not self._desk.turns_to(number) or time.monotonic() - self._held_since >= _FRESH:
            return None
        self._waiting.popleft()
        return lease

    def took(self, lease: Lease, seconds: float) -> None:
        """It is over, however it ended."""
        self._pace.took(seconds, len(lease.receipt))

    def is_done(self, lease: Lease) -> None:
        """Only its receipt is left, to be deleted with the next reserve."""
        self._done.append(lease)

    def let_go(self) -> None:
        """Settle what is done, put back what is not begun: nothing is held any more."""
        self._put_back()
        self._settler.delete(self._done)
        self._done = []
        self._desk.settled()
        self._settler.tell()

    def reclaim(self) -> None:
        """A reserve was not answered: what it took is nobody's now. Back with it, before anything else is asked."""
        if self._desk.slot.asked:
            since = time.monotonic() - self._desk.slot.asked + UNDER_WAY
            self._store.reclaim(self._pool.queues, self._tag, since, self._done)
            self._desk.slot.asked = 0.0

    def refused(self, problems: set[tuple[str, str]]) -> None:
        """Told again only when it changes: a broken key stays broken for thousands of rounds."""
        for problem in problems - self._problems:
            self._listeners.tell(StoreRefused(*problem))
        self._problems = problems

    def _put_back(self) -> None:
        if not self._waiting:
            return
        self._settler.put_back([lease for _, lease in self._waiting], self._tag)
        while self._waiting:
            self._desk.settled_one(self._waiting.pop()[0])
        if self._desk.is_wanted_back:
            # The steward's own giving back may still be under way: it must not meet what we reserve next.
            self.join()

    def _reserve(self, queues: Sequence[str]) -> bool:
        """One round trip: settle what is done, stage what is due, take the next jobs; ``False`` when there is none."""
        unsure = bool(self._desk.slot.asked)
        self.reclaim()
        if self._listeners.wants(JobReserving):
            self._listeners.tell(JobReserving(tuple(queues)))
        # The lease is counted from before it was asked for: it never ends earlier than we believe.
        asked = self._desk.asking()
        reservation = self._store.reserve(queues, self._tag, self._pace.ahead(), self._done)
        unsure = unsure or self._desk.is_wanted_back  # of what was done the steward has deleted some
        self._desk.holds(reservation.leases, asked + self._pool.connection.retry_after)
        self._done = []
        self._outage.regained()
        self._report(reservation, unsure)
        self.next_due = reservation.next_due
        if not reservation.leases:
            self._pace.begin_anew()
        self._waiting.extend(enumerate(reservation.leases))
        self._held_since = time.monotonic()
        return bool(reservation.leases)

    def _report(self, reservation: Reservation, unsure: bool) -> None:
        for lease in reservation.refused if not unsure else ():
            self._listeners.tell(LeaseLost(facts_of(decode(lease.receipt, lease.attempts), lease.queue)))
        for queue, reason in reservation.quarantined:
            self._listeners.tell(JobQuarantined(queue, reason))
        self.refused(set(reservation.problems))
