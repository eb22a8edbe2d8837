"""The loop: may I run, reserve, run, settle, is it time to leave."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from queuepool.attempt import Attempts
from queuepool.board import State
from queuepool.desk import Desk
from queuepool.errors import StoreDown, StoreError
from queuepool.events import (
    JobQuarantined,
    JobReserving,
    LeaseLost,
    StoreRefused,
    WorkerStarting,
    WorkerStopping,
)
from queuepool.gate import Gate
from queuepool.limits import Limits, StopReason
from queuepool.listeners import Listeners
from queuepool.mourning import Mourned
from queuepool.orders import Orders
from queuepool.outage import Outage
from queuepool.payload import decode
from queuepool.settings import PoolSettings
from queuepool.settle import Settler, facts_of
from queuepool.signals import Attention
from queuepool.stores.base import UNDER_WAY, Lease, QueueStore, Reservation

#: seconds by which a store may end a wait too late: Redis looks ten times a second
_STORES_TICK = 0.1
#: seconds between two looks at the board while a new pool's steward has not read the control keys
_ORDERS_COME = 0.01


class Worker:
    """Reserves, runs and settles jobs until it has a reason to leave."""

    def __init__(
        self,
        pool: PoolSettings,
        store: QueueStore,
        orders: Orders,
        attempts: Attempts,
        settler: Settler,
        desk: Desk,
        attention: Attention,
        outage: Outage,
        limits: Limits,
        listeners: Listeners,
        take_mourned: Callable[[], Mourned | None],
        *,
        alone: bool,
    ) -> None:
        self._pool = pool
        self._store = store
        self._orders = orders
        self._attempts = attempts
        self._settler = settler
        self._desk = desk
        self._attention = attention
        self._outage = outage
        self._limits = limits
        self._listeners = listeners
        self._take_mourned = take_mourned
        self._gate = Gate(pool.queues, pool.force, orders, attention, listeners)
        self._alone = alone
        self._parent = os.getppid()
        self._tag = 0
        self._jobs = 0
        self._mourned = -1
        self._found_none = False
        self._next_due: float | None = None
        self._served: tuple[str, ...] = ()
        self._done: list[Lease] = []
        self._problems: set[tuple[str, str]] = set()

    def run(self) -> StopReason:
        """Work until there is a reason to leave; settles what is done before it gives that reason.

        Raises ``StoreDown`` when told to stop while the store is away.
        """
        self._tag = self._outage.insist(self._store.join)[0]
        self._desk.slot.tag = self._tag
        while not (self._orders.are_known() or self._attention.stop):
            self._desk.alive()
            self._attention.begin_round()
            self._attention.wait(lambda: time.sleep(_ORDERS_COME))
        self._listeners.tell(WorkerStarting(self._desk.slot.number))
        self._desk.show(State.IDLE)
        while not (reason := self._reason_to_leave()):
            self._desk.alive()
            try:
                self._round()
            except StoreDown as error:
                self._outage.lost(error)
                if self._attention.stop:
                    raise  # what is in hand stays there, for the steward
                self._outage.rest()
            except StoreError as error:
                self._refused({("", str(error))})
                self._attention.wait(lambda: time.sleep(self._pool.sleep))
        self._settle_done()
        if self._desk.slot.asked:
            with suppress(StoreError):  # else the steward does it, who sees that we had asked
                self._reclaim()
        with suppress(StoreDown):  # a lone worker's; it has nobody to mourn
            self._orders.look()
        self._mourn()
        self._listeners.tell(WorkerStopping(self._desk.slot.number, reason, reason.code, self._jobs))
        return reason

    def _reason_to_leave(self) -> StopReason | None:
        self._attention.begin_round()
        if self._attention.stop:
            return StopReason.INTERRUPTED
        if os.getppid() != self._parent:
            return StopReason.ORPHANED
        reached = self._limits.reached(
            jobs=self._jobs, rss=self._desk.rss(), found_none=self._found_none, now=time.monotonic()
        )
        return reached or (StopReason.RESTART if self._orders.must_leave() else None)

    def _round(self) -> None:
        queues = self._gate.queues()
        if not queues:
            # As Laravel: who leaves when there is nothing to do does not wait for a pause to end.
            self._found_none = True
            self._pause(0.0 if self._limits.is_leaving_when_empty else self._pool.sleep)
            return
        if queues != self._served:
            self._settle_done()  # a reserve can settle only what came from the queues it serves
            self._served = queues
        self._mourn()
        lease = self._reserve(queues)
        if lease is None:
            self._wait(queues)
        else:
            self._run(lease)

    def _run(self, lease: Lease) -> None:
        done = self._attempts.run(lease)
        self._jobs += 1
        if done:
            self._done.append(done)
        if self._pool.rest:
            self._pause(self._pool.rest)

    def _mourn(self) -> None:
        """Call the hooks of jobs that failed with their worker; the board says when there may be one."""
        mourned_so_far = self._orders.mourned()
        if self._mourned != mourned_so_far:
            self._mourned = mourned_so_far
            while mourned := self._take_mourned():
                self._settle_done()
                self._attempts.mourn(mourned.lease, mourned.error)

    def _reserve(self, queues: Sequence[str]) -> Lease | None:
        """One round trip: settle what is done, stage what is due, take the next job."""
        unsure = bool(self._desk.slot.asked)
        if unsure:
            self._reclaim()
        if self._listeners.wants(JobReserving):
            self._listeners.tell(JobReserving(tuple(queues)))
        # The lease is counted from before it was asked for: it never ends earlier than we believe.
        asked = self._desk.asking()
        reservation = self._store.reserve(queues, self._tag, 1, self._done)
        self._desk.holds(reservation.leases, asked + self._pool.connection.retry_after)
        self._done = []
        self._outage.regained()
        self._report(reservation, unsure)
        self._found_none = not reservation.leases
        self._next_due = reservation.next_due
        return reservation.leases[0] if reservation.leases else None

    def _reclaim(self) -> None:
        """A reserve was not answered: what it took is nobody's now. Back with it, before anything else is asked."""
        since = time.monotonic() - self._desk.slot.asked + UNDER_WAY
        self._store.reclaim(self._pool.queues, self._tag, since, self._done)
        self._desk.slot.asked = 0.0

    def _report(self, reservation: Reservation, unsure: bool) -> None:
        for lease in reservation.refused if not unsure else ():
            self._listeners.tell(LeaseLost(facts_of(decode(lease.receipt), lease.queue)))
        for queue, reason in reservation.quarantined:
            self._listeners.tell(JobQuarantined(queue, reason))
        self._refused(set(reservation.problems))

    def _refused(self, problems: set[tuple[str, str]]) -> None:
        """Told again only when it changes: a broken key stays broken for thousands of rounds."""
        for problem in problems - self._problems:
            self._listeners.tell(StoreRefused(*problem))
        self._problems = problems

    def _wait(self, queues: Sequence[str]) -> None:
        """Until a job may be there. A lone worker also wakes for what is due; in a pool the steward stages it."""
        self._desk.show(State.IDLE)
        if self._limits.is_leaving_when_empty:
            return
        timeout = min(self._pool.connection.block_for, self._pool.sleep if self._problems else math.inf)
        self._desk.waits(timeout)
        if not self._alone or self._next_due is None or self._next_due > timeout:
            self._attention.wait(lambda: self._store.wait(queues, timeout))
        elif (blocking := self._next_due - _STORES_TICK) > 0:
            self._attention.wait(lambda: self._store.wait(queues, blocking))
        else:
            self._pause(self._next_due)

    def _pause(self, seconds: float) -> None:
        self._settle_done()
        self._desk.show(State.PAUSED if self._gate.closed_by else State.IDLE)
        self._attention.wait(lambda: time.sleep(seconds))

    def _settle_done(self) -> None:
        self._settler.delete(self._done)
        self._done = []
        self._desk.settled()
        self._settler.tell()
