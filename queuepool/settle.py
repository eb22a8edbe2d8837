"""Carrying out a verdict: the one place, for the living worker and for the steward that buries a dead one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from queuepool.errors import BadPayload, StoreDown, StoreError
from queuepool.events import (
    JobFacts,
    JobFailed,
    JobGivenBack,
    JobQuarantined,
    JobReleased,
    LeaseLost,
    StoreRefused,
)
from queuepool.failures import record
from queuepool.listeners import Listeners
from queuepool.outage import Outage
from queuepool.payload import Payload, decode
from queuepool.stores.base import Lease, QueueStore
from queuepool.verdict import Delete, Fail, Release, Verdict


def facts_of(payload: Payload, queue: str) -> JobFacts:
    """How events speak of a job."""
    return JobFacts(payload.id, payload.uuid, payload.name, queue, payload.attempts)


class Settler:
    """Writes verdicts to the store, insisting through outages, and tells what became of the job.

    All verbs raise ``StoreDown`` only when a stop is asked while the store is away.
    """

    def __init__(self, store: QueueStore, outage: Outage, listeners: Listeners, connection: str) -> None:
        self._store = store
        self._outage = outage
        self._listeners = listeners
        self._connection = connection

    def settle(
        self, lease: Lease, payload: Payload, verdict: Verdict, error: BaseException | None = None, tally: str = ""
    ) -> bool:
        """``False`` when the job was not ours any more, or the store refuses to write it; nothing was written then."""
        facts = facts_of(payload, lease.queue)
        match verdict:
            case Delete():
                return self._carry_out(facts, lambda: self._store.delete([lease])[0])
            case Release(delay):
                ours = self._carry_out(facts, lambda: self._store.release(lease, delay, payload.id, tally))
                if ours:
                    self._listeners.tell(JobReleased(facts, delay, error))
                return ours
            case Fail(reason):
                row = record(payload, lease, self._connection, reason)
                ours = self._carry_out(facts, lambda: self._store.fail(lease, payload.id, row))
                if ours:
                    self._listeners.tell(JobFailed(facts, reason))
                return ours

    def give_back(self, lease: Lease) -> bool:
        """To the head of its queue, as if it had never been reserved; nobody need have read it."""
        try:
            facts = facts_of(decode(lease.receipt), lease.queue)
        except BadPayload:
            facts = JobFacts("", "", "", lease.queue, 0)
        ours = self._carry_out(facts, lambda: self._store.give_back([lease])[0])
        if ours:
            self._listeners.tell(JobGivenBack(facts))
        return ours

    def quarantine(self, lease: Lease, reason: str) -> None:
        """Out of the way, bytes and all."""
        nobody = JobFacts("", "", "", lease.queue, 0)
        if self._carry_out(nobody, lambda: self._store.quarantine(lease, reason)):
            self._listeners.tell(JobQuarantined(lease.queue, reason))

    def delete(self, leases: Sequence[Lease]) -> None:
        """End what is done."""
        if leases:
            self._outage.insist(lambda: self._store.delete(leases))

    def _carry_out(self, facts: JobFacts, verb: Callable[[], bool]) -> bool:
        try:
            ours, certain = self._outage.insist(verb)
        except StoreDown:
            raise
        except StoreError as error:
            self._listeners.tell(StoreRefused(facts.queue, str(error)))
            return False
        if not ours and certain:
            self._listeners.tell(LeaseLost(facts))
        # Refused after an unanswered call: that call did it.
        return ours or not certain
