"""A worker's next jobs: reserved ahead while jobs are quick, in a round trip that also deletes done ones.

Each reserve carries the worker's tag, by which the store knows what a lost reply had taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from queuepool.errors import StoreDown, StoreError
from queuepool.events import JobQuarantined, JobReserving, LeaseLost, StoreRefused
from queuepool.events.listeners import Listeners
from queuepool.payload.envelope import decode
from queuepool.payload.lease import Lease
from queuepool.settlement.facts import facts_of
from queuepool.settlement.flows import event_of
from queuepool.settlement.outage import Outage
from queuepool.stores.contract import Reservation, WaitingReserve
from queuepool.stores.flows import FlowEnd, Flows
from queuepool.worker.context import WorkerContext
from queuepool.worker.membership import Membership
from queuepool.worker.prefetch_size import PrefetchSize
from queuepool.worker.turns import turns_of


class _Request(NamedTuple):
    """A reserve that was sent: when (monotonic seconds), the done jobs that it deletes, and how to read its reply."""

    at: float
    done: list[Lease]
    read_reply: Callable[[], Reservation]


class Prefetch:
    """Reserves a worker's jobs, and gives back those that it does not start.

    The next batch is requested when half of the current one has been started. Methods may raise ``StoreDown``; what is
    held then stays as it is.
    """

    def __init__(self, context: WorkerContext, membership: Membership, reports: Reports, size: PrefetchSize) -> None:
        self._store = context.store
        self._settler = context.settler
        self._listeners = context.listeners
        self._signals = context.signals
        self._retry_after = context.pool.connection.retry_after
        self._batch = context.slot_writer.batch
        self._membership = membership
        self._size = size
        self._reports = reports
        self._turns = turns_of(context.pool.queues, context.pool.weights)
        self._served: Sequence[str] = ()
        #: the request for the next batch, if it was sent before this one was used up
        self._request: _Request | None = None
        #: the number of waiting jobs at which the next batch is requested; 0 = only once none waits
        self._requests_at = 0
        #: the steward may have settled or given back what we held; it goes by our tag, so we need a new one
        self._overtaken = False
        #: the last reply left no job ready, so the next request may wait for one
        self._was_last = False
        #: the connection ended while the last request waited at the server
        self._was_cut_off = False
        #: seconds until the next job is due, if the last reserve brought none; ``None`` = no job waits
        self.next_due: float | None = None

    def next_job(self, queues: Sequence[str]) -> Lease | None:
        """The next job, ready to be started; ``None`` if there is none."""
        if queues != self._served:
            self.let_go()  # a reserve can settle only what came from the queues it serves
            self._served = queues
        if 0 < len(self._batch.waiting) <= self._requests_at:
            self._request_ahead(queues)
        while self._batch.waiting or self._hold_reply_ahead() or self._reserve(queues):
            if lease := self.next_held():
                return lease
            self._give_back()
        return None

    def next_held(self) -> Lease | None:
        """The next held job; ``None`` if there is none, or if ``next_job`` must deal with what is held."""
        if len(self._batch.waiting) <= self._requests_at:
            return None
        return self._batch.next_job()

    def has_none_left(self, queues: Sequence[str]) -> bool:
        """Whether, by the last reply, no job is ready in these queues: the next request may wait for one.

        Not if a member of a flow is done: what follows it may be ready as soon as it is settled.
        """
        has_none = self._was_last and queues == self._served and not self._batch.waiting and not self._request
        return has_none and not self._ends_members

    @property
    def _ends_members(self) -> bool:
        return any(lease.member for lease in self._batch.done)

    def await_jobs(self, queues: Sequence[str], timeout: float, meanwhile: Callable[[], None]) -> None:
        """Have the store reserve the next job as soon as one may be ready, and hold it.

        Returns then, after ``timeout`` seconds, at a signal, or at once if ``next_job`` must ask first. ``meanwhile``
        is called once the request was sent, and must not use the store. Only if the store can ``reserve_waiting``.
        """
        send, self._was_last = self._store.reserve_waiting, False
        self._reach()
        unsure = self._overtaken or self._batch.is_wanted_back or self._batch.awaits_reply
        if not send or unsure or self._membership.is_spent:
            return  # the next reserve begins with a new tag
        self._size.start_over()
        at, turn = self._begin_request(queues), self._batch.turn
        reply = send(self._order(queues), timeout, self._membership.tag, self._size.ahead(), self._batch.done)
        meanwhile()
        reservation = self._read(reply, turn)
        if reservation is None:  # what it may have taken goes back now: whatever ended the wait may last
            self.reclaim()
            return
        # Later than this only if we were stopped: then its lease may have ended.
        self._hold(reservation, at, since=min(time.monotonic(), at + timeout))
        self._take_in(reservation, turn)

    def leaves_nothing_at_the_server(self) -> None:
        """The worker leaves while the store is away: if the server closed the waiting request, it took no job."""
        if self._was_cut_off:
            self._batch.replied()

    def took(self, lease: Lease, seconds: float) -> None:
        """This job ran for ``seconds``, whatever its outcome."""
        self._size.took(seconds, len(lease.receipt))

    def let_go(self) -> None:
        """Delete what is done and give back what was not started: nothing is held any more."""
        self._give_back()
        self._settler.delete(self._batch.done)
        self._batch.drop()
        self._settler.emit_noted()

    def reclaim(self) -> None:
        """If the last reserve got no reply, give back what it took before sending the next command."""
        if self._batch.awaits_reply:
            self._membership.renew(self._batch.done)

    def _give_back(self) -> None:
        """Give back what was not started, in order. Jobs requested ahead need not be put on the board first."""
        ahead = self._reply_ahead()
        leases = [lease for _, lease in self._batch.waiting] + (ahead.leases if ahead else [])
        self._settler.give_back_unstarted(leases)
        self._batch.gave_back()
        self._overtaken = self._overtaken or self._batch.is_wanted_back
        if ahead:
            self._batch.replied()
            self._reports.emit(ahead, unsure=self._overtaken)
        self._settler.emit_noted()

    def _request_ahead(self, queues: Sequence[str]) -> None:
        """Before the batch is used up, delete what is done so far and request the next jobs."""
        self._requests_at = 0
        if send := self._store.reserve_ahead:
            with suppress(StoreDown):  # held jobs can run without the store; the board still shows the request
                self._reach()
                if self._membership.is_spent:
                    return  # the next reserve begins with a new tag
                at = self._begin_request(queues)
                done = self._batch.done
                read_reply = send(self._order(queues), self._membership.tag, self._size.ahead(), done)
                self._request, self._batch.done = _Request(at, done, read_reply), []

    def _reply_ahead(self) -> Reservation | None:
        """The reply to the request ahead; ``None`` if there was no request or no reply."""
        if not self._request:
            return None
        request, self._request = self._request, None
        try:
            return request.read_reply()
        except StoreError:  # the next reserve finds out why
            self._batch.done = [*request.done, *self._batch.done]
            return None

    def _hold_reply_ahead(self) -> bool:
        """Hold the jobs requested ahead; ``False`` if there are none."""
        if self._batch.is_wanted_back:
            self._give_back()
        if not self._request:
            return False
        began = time.monotonic()
        at, turn, reservation = self._request.at, self._batch.turn, self._reply_ahead()
        self._size.waited(time.monotonic() - began)
        if not reservation:
            return False
        if reservation.leases:
            self._hold(reservation, at, since=at)
        else:
            self._batch.replied()
        self._take_in(reservation, turn)
        return bool(reservation.leases)

    def _reserve(self, queues: Sequence[str]) -> bool:
        """One round trip: delete what is done, stage what is due, take the next jobs; ``False`` if there are none."""
        if not self._overtaken:  # otherwise renewing the tag connects, and opens the new file if the old was replaced
            self._reach()
        unsure = self._overtaken or self._batch.awaits_reply
        if unsure or self._membership.is_spent:
            if self._batch.awaits_reply:
                self._size.start_over()  # a batch of that size may not have fitted on the board
            self._membership.renew(self._batch.done)
            self._overtaken = False
        self._membership.look_again(self._batch.done)
        at, turn = self._begin_request(queues), self._batch.turn
        order, tag = self._order(queues), self._membership.tag
        try:
            reservation = self._store.reserve(order, tag, self._ahead(), self._batch.done)
        except StoreDown:
            raise
        except StoreError as error:
            if not self._ends_members:
                raise
            self._reports.refused({("", str(error))})
            self._end_each_member()
            return self._reserve(queues)
        answered = time.monotonic()
        self._size.waited(answered - at)
        self._batch.done = []
        self._hold(reservation, at, since=answered)
        self._take_in(reservation, turn, unsure=unsure)
        if not reservation.leases:
            self._size.start_over()
        return bool(reservation.leases)

    def _ahead(self) -> int:
        has_parked, self._batch.has_parked = self._batch.has_parked, False
        return (has_parked and self._size.parked()) or self._size.ahead()

    def _end_each_member(self) -> None:
        """A reserve was refused, perhaps for the broken flow of a done member: nothing else is to wait for that."""
        if not self._settler.delete(self._batch.done):
            self._batch.replied()  # it was that: nothing was reserved, and that member waits for its lease to end
        self._batch.deleted()
        self._settler.emit_noted()

    def _read(self, reply: WaitingReserve, turn: int) -> Reservation | None:
        """The reply to a reserve that waits; ``None`` if it was given up."""
        if self._batch.done and not self._has_deleted(reply, turn):
            return None
        self._signals.wait(reply.wait)
        try:
            return reply.read()
        except StoreError:
            self._was_cut_off = reply.was_cut_off
            raise

    def _has_deleted(self, reply: WaitingReserve, turn: int) -> bool:
        """Whether the done jobs, which were sent along, are deleted; if not, the reserve is given up."""
        try:
            deleted = reply.deleted()
        except StoreDown:
            raise
        except StoreError:  # the next reserve finds out why
            reply.give_up()
            return False
        self._batch.deleted()
        self._reports.emit(deleted, unsure=self._batch.was_wanted_back(turn))
        return True

    def _take_in(self, reservation: Reservation, turn: int, *, unsure: bool = False) -> None:
        """Report what this reply brought; give back what is held if the steward wants it back."""
        # Written first, then checked, as in HeldBatch.next_job: a slow reply may look like a stuck job.
        self._overtaken = self._batch.was_wanted_back(turn)
        if self._turns:
            self._turns.took(reservation.leases)
        self._reports.emit(reservation, unsure=unsure or self._overtaken)
        if self._overtaken:
            self._give_back()

    def _reach(self) -> None:
        """Connect unless connected: if nothing can be sent, there is nothing to give back.

        Done before the tag is checked: another server may answer now, on which another worker has our tag.
        """
        try:
            self._store.reach()
        except StoreDown:
            self._overtaken = True
            raise

    def _order(self, queues: Sequence[str]) -> Sequence[str]:
        """The order in which the next reserve asks them."""
        return self._turns.order(queues) if self._turns else queues

    def _begin_request(self, queues: Sequence[str]) -> float:
        if self._listeners.wants(JobReserving):
            self._listeners.emit(JobReserving(tuple(queues)))
        # The lease is counted from before the request: it never ends earlier than we believe.
        self._was_cut_off = False
        self._membership.used_at = self._batch.requesting()
        return self._membership.used_at

    def _hold(self, reservation: Reservation, at: float, since: float) -> None:
        leases = reservation.leases
        self._batch.hold(leases, at + self._retry_after, since)
        self.next_due, self._was_last = reservation.next_due, reservation.is_last
        # Fewer jobs than requested: there were no more.
        self._requests_at = len(leases) // 2 if len(leases) == self._size.wanted and self._store.reserve_ahead else 0


class Reports:
    """Emits what a reserve's reply reports besides the jobs."""

    def __init__(self, listeners: Listeners, outage: Outage, flows: Flows) -> None:
        self._listeners = listeners
        self._outage = outage
        self._flows = flows
        self._problems: set[tuple[str, str]] = set()

    @property
    def has_problems(self) -> bool:
        """Whether the last reply named a queue that could not be served."""
        return bool(self._problems)

    def emit(self, reservation: Reservation, *, unsure: bool) -> None:
        """Emit what the reply reports. ``unsure``: the steward may have deleted done jobs: report no lost leases."""
        self._outage.regained()
        for lease in reservation.refused if not unsure else ():
            self._listeners.emit(LeaseLost(facts_of(decode(lease.receipt, lease.attempts), lease.queue)))
        for queue, reason in reservation.quarantined:
            self._listeners.emit(JobQuarantined(queue, reason))
        problems = set(reservation.problems)
        if reservation.flows:
            self._go_on(reservation.flows, problems)
        self.refused(problems)

    def _go_on(self, flows: Sequence[FlowEnd], problems: set[tuple[str, str]]) -> None:
        with suppress(StoreError):  # a steward does what is left over
            for end in self._flows.after(flows):
                self._listeners.emit(event_of(end))
            problems |= {("", self._flows.refused)} if self._flows.refused else set()

    def refused(self, problems: set[tuple[str, str]]) -> None:
        """Emit ``(queue, server's message)`` pairs, but only new ones: a broken key stays broken for long."""
        for problem in problems - self._problems:
            self._listeners.emit(StoreRefused(*problem))
        self._problems = problems
