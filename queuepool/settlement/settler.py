"""Settling jobs: the one place that carries out a verdict, for a living worker and for the steward of a dead one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadPayload, StoreDown, StoreError
from queuepool.events import (
    Event,
    JobFacts,
    JobFailed,
    JobGivenBack,
    JobQuarantined,
    JobReleased,
    LeaseLost,
    StoreRefused,
)
from queuepool.events.listeners import Listeners
from queuepool.payload.context import values_of
from queuepool.payload.ending import Unlock
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.options import TRACK
from queuepool.settlement.commands import commands_of
from queuepool.settlement.endings import Endings
from queuepool.settlement.failed_record import record
from queuepool.settlement.outage import Outage
from queuepool.settlement.recording import fail
from queuepool.settlement.run import NOT_RUN, Run
from queuepool.settlement.states import States
from queuepool.settlement.verdict import Delete, Fail, Locks, Release, Verdict
from queuepool.stores.contract import QueueStore

T = TypeVar("T")


def facts_of(payload: Payload, queue: str) -> JobFacts:
    """The facts about a job that its events carry."""
    context = None if payload.context is None else values_of(payload.context, "data") or None
    return JobFacts(payload.id, payload.uuid, payload.name, queue, payload.attempts, context, payload.tags)


def _facts_in(lease: Lease) -> JobFacts:
    """The facts about a job whose payload may never have been decoded."""
    try:
        return facts_of(decode(lease.receipt, lease.attempts), lease.queue)
    except BadPayload:
        return _facts_unread(lease.queue)


def _facts_unread(queue: str) -> JobFacts:
    """The facts about a payload that cannot be decoded."""
    return JobFacts("", "", "", queue, 0)


class Settler:
    """Writes verdicts to the store, retries through outages, and notes the events that follow.

    The caller first records that the job is settled, then calls ``emit_noted``: a listener may hang or end the
    process. Unless said otherwise, methods raise ``StoreDown`` only when a stop is requested during an outage.
    """

    def __init__(
        self,
        store: QueueStore,
        outage: Outage,
        listeners: Listeners,
        connection: ConnectionSettings,
        track: float = 0.0,
    ) -> None:
        self._store = store
        self._outage = outage
        self._listeners = listeners
        self._connection = connection.name
        self.states = States(track)
        self.endings = Endings(connection, commands_of(connection))
        # Leases whose call was not answered, so that it may have been carried out, and the verdict if there was one.
        self._unanswered: dict[Lease, Verdict | None] = {}
        self._noted: list[Event] = []

    def may_follow(self, receipt: bytes) -> bool:
        """Whether more than its removal may follow from the end of a job, by a glance at its bytes."""
        return self.states.tracks_all or TRACK.encode() in receipt or self.endings.may_follow(receipt)

    def note(self, event: Event) -> None:
        """Emit this event at the next ``emit_noted``."""
        self._noted.append(event)

    def emit_noted(self) -> None:
        """Emit the noted events."""
        noted, self._noted = self._noted, []
        for event in noted:
            self._listeners.emit(event)

    def begun(self, lease: Lease) -> Verdict | None:
        """The verdict that was not answered and may have been carried out: it must be repeated, not replaced."""
        return self._unanswered.get(lease)

    def settle(
        self,
        lease: Lease,
        payload: Payload,
        verdict: Verdict,
        error: BaseException | None = None,
        tally: str = "",
        cause: Event | None = None,
        locks: Locks = None,
        run: Run = NOT_RUN,
    ) -> bool:
        """Carry out the verdict. ``False``: the lease was lost or the store refuses, and nothing was written.

        ``error`` is why the job is released, ``tally`` the tally that a release raises. ``cause`` is the event that led
        to the verdict; it is emitted before that of the verdict. ``locks`` is from the job's policy, ``run`` is
        for those that follow the job.
        """
        facts = facts_of(payload, lease.queue)
        verb, outcome = self._settlement(facts, lease, payload, verdict, error, tally, locks, run)
        is_ours = self._carry_out(facts, lease, verb, verdict, cause)
        if is_ours and outcome:
            self.note(outcome)
        return is_ours

    def _settlement(
        self,
        facts: JobFacts,
        lease: Lease,
        payload: Payload,
        verdict: Verdict,
        error: BaseException | None,
        tally: str,
        locks: Locks,
        run: Run,
    ) -> tuple[Callable[[], bool], Event | None]:
        """What to call, and the event to emit when it has succeeded."""
        match verdict:
            case Delete():
                state = self.states.done(payload, lease.queue, run)
                ending = self.endings.after(payload, locks=locks)._replace(state=state)
                return lambda: self._store.finish(lease, ending), None
            case Release(delay):
                state = self.states.released(payload, lease.queue, run, delay, error)
                released = JobReleased(facts, delay, error)
                return lambda: self._store.release(lease, delay, payload.id, tally, state), released
            case Fail(reason):
                row = record(payload, lease, self._connection, reason)
                state = self.states.failed(payload, lease.queue, run, reason)
                ending = self.endings.after(payload, reason, locks)._replace(state=state)
                verb = partial(fail, self._store, lease, payload.id, row, ending, self.note)
                return verb, JobFailed(facts, reason)

    def give_back(self, lease: Lease) -> bool:
        """Return a job to the head of its queue, as if it had never been reserved. ``False`` as for ``settle``."""
        facts = _facts_in(lease)
        is_ours = self._carry_out(facts, lease, lambda: self._store.give_back([lease])[0])
        if is_ours:
            self.note(JobGivenBack(facts))
        return is_ours

    def give_back_unstarted(self, leases: Sequence[Lease]) -> None:
        """Return jobs that have not begun to the head of their queues; another process may already have done so."""
        if not leases:
            return
        answer = self._ask(leases[0].queue, lambda: self._store.give_back(leases))
        for lease, is_ours in zip(leases, answer[0] if answer else (), strict=bool(answer)):
            if is_ours:
                self.note(JobGivenBack(_facts_in(lease)))

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> None:
        """Return the jobs of lost replies, which the retired ``tag`` reserved, to the head of their queues.

        Raises ``StoreDown`` at once, and ``StoreError``. Arguments as for ``QueueStore.reclaim``.
        """
        for lease in self._store.reclaim(queues, tag, since, known):
            self.note(JobGivenBack(_facts_in(lease)))

    def quarantine(self, lease: Lease, reason: str) -> None:
        """Move a payload that cannot be a job to the quarantine, unchanged; ``reason`` is one word."""
        if self._carry_out(_facts_unread(lease.queue), lease, lambda: self._store.quarantine(lease, reason)):
            self.note(JobQuarantined(lease.queue, reason))

    def finish(self, lease: Lease, payload: Payload, locks: Locks, run: Run = NOT_RUN) -> None:
        """Remove a job that is done, with what follows from it."""
        self.settle(lease, payload, Delete(), locks=locks, run=run)

    def unlock(self, unlocks: Sequence[Unlock]) -> None:
        """Release the unique locks of a job that is about to run."""
        self._outage.insist(lambda: self._store.unlock(unlocks))

    def delete(self, leases: Sequence[Lease]) -> None:
        """Remove jobs that are done, from which nothing follows."""
        if leases:
            self._ask(leases[0].queue, lambda: self._store.delete(leases))

    def _carry_out(
        self,
        facts: JobFacts,
        lease: Lease,
        verb: Callable[[], bool],
        verdict: Verdict | None = None,
        cause: Event | None = None,
    ) -> bool:
        unsure = lease in self._unanswered
        self._unanswered[lease] = verdict
        answer = self._ask(facts.queue, verb)
        del self._unanswered[lease]
        if cause:
            self.note(cause)
        if answer is None:
            return False
        is_ours, certain = answer[0], answer[1] and not unsure
        if not is_ours and certain:
            self.note(LeaseLost(facts))
        # A refusal after an unanswered call means that that call has done it.
        return is_ours or not certain

    def _ask(self, queue: str, verb: Callable[[], T]) -> tuple[T, bool] | None:
        """The result of ``Outage.insist``; ``None`` when the store refuses the queue, which is noted."""
        try:
            return self._outage.insist(verb)
        except StoreDown:
            raise
        except StoreError as error:
            self.note(StoreRefused(queue, str(error)))
            return None
