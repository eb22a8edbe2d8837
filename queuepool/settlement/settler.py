"""Settle jobs: the only place that carries out verdicts, for a living worker, and for the steward after a death.

A job that is done, and from whose end nothing follows, is not settled here: the worker's next reserve deletes it
(``Prefetch``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from queuepool.config.settings import ConnectionSettings
from queuepool.config.values import LONGEST
from queuepool.errors import StoreDown, StoreError, TableMissing
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
from queuepool.payload.envelope import Payload, digest_of
from queuepool.payload.lease import NOTHING, Ending, Lease, Unlock
from queuepool.payload.members import FLOW, MemberEnd
from queuepool.payload.options import TRACK
from queuepool.settlement.attempts import AttemptRecords
from queuepool.settlement.endings import Endings, commands_of
from queuepool.settlement.facts import facts_in, facts_of, facts_of_unread, unknown_in
from queuepool.settlement.failing import fail, record
from queuepool.settlement.flows import done_member, event_of, failed_member, finish
from queuepool.settlement.missed_locks import MissedLocks
from queuepool.settlement.outage import Outage
from queuepool.settlement.sealing import Sealer
from queuepool.settlement.states import States
from queuepool.settlement.verdict import NOT_RUN, Delete, Fail, Locks, Release, Run, Verdict
from queuepool.stores.contract import NO_TRY, QueueStore

T = TypeVar("T")
#: how many readers a payload must have killed to be quarantined, and the reason that is recorded then
_MAX_DEATHS, DEADLY = 2, "deadly"
#: the keys of jobs that are tracked, or members of flows
_FOLLOWED = TRACK.encode(), FLOW.encode()


class Settlement(NamedTuple):
    """What becomes of an attempt, by the verdict of its worker, or of the steward if the worker has died."""

    lease: Lease
    payload: Payload
    verdict: Verdict
    #: why the job is released
    error: BaseException | None = None
    #: the tally that a release increments
    tally: str = ""
    #: the event that led to the verdict; it is emitted first
    cause: Event | None = None
    #: from the job's policy
    locks: Locks = None
    #: what those that follow the job see of the attempt
    run: Run = NOT_RUN


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
        attempts: AttemptRecords | None = None,
    ) -> None:
        """``track``: as of the pool. ``attempts``: makes their records, if they are kept."""
        self._store = store
        self._outage = outage
        self._listeners = listeners
        self._connection = connection.name
        self.states = States(track)
        self.attempts = attempts
        self.endings = Endings(connection, commands_of(connection))
        self.sealer, self._missed_locks = Sealer(connection), MissedLocks(connection, store.locks_of)
        # Leases whose last call was not answered, so that it may have been carried out; with the verdict, if any.
        self._unanswered: dict[Lease, Verdict | None] = {}
        self._noted: list[Event] = []
        #: called after each try to end a member of a flow
        self.mark_flows: Callable[[], None] = lambda: None
        #: called when a job with limits wants to start
        self.mark_limits: Callable[[], None] = lambda: None

    def may_follow(self, receipt: bytes) -> bool:
        """Whether the end of a job may need more than its removal, by a glance at its bytes."""
        return self.states.tracks_all or any(key in receipt for key in _FOLLOWED) or self.endings.may_follow(receipt)

    def note(self, event: Event) -> None:
        """Emit this event at the next ``emit_noted``."""
        self._noted.append(event)

    def emit_noted(self) -> None:
        """Emit the noted events."""
        noted, self._noted = self._noted, []
        for event in noted:
            self._listeners.emit(event)

    def unanswered_verdict(self, lease: Lease) -> Verdict | None:
        """The verdict whose call was not answered; it may have been carried out, so repeat it, do not replace it."""
        return self._unanswered.get(lease)

    def settle(self, settlement: Settlement) -> bool:
        """Carry it out. ``False``: the lease was lost or the store refused, and nothing was written."""
        lease, payload, verdict = settlement.lease, settlement.payload, settlement.verdict
        facts = facts_of(payload, lease.queue)
        verb, outcome = self._act(facts, settlement)
        is_ours = self._carry_out(facts, lease, verb, verdict, settlement.cause)
        is_of_flow = FLOW in payload.fields or settlement.run.reports is not None
        ends_member = is_of_flow and not isinstance(verdict, Release)
        if ends_member:
            self.mark_flows()  # if it is not ours, its worker may have died before it had done all that follows
        if is_ours:
            self._noted += filter(None, (outcome, self._missed_locks.at_end(facts, payload, verdict)))
            if ends_member:
                self._note_flow()
        return is_ours

    def _note_flow(self) -> None:
        """What has become of the flow of the member that has just ended."""
        flows = self._store.flows
        self._noted += [event_of(flows.last_end)] if flows.last_end else []
        self._noted += [StoreRefused("", flows.refused)] if flows.refused else []

    def _act(self, facts: JobFacts, settlement: Settlement) -> tuple[Callable[[], bool], Event | None]:
        """What to call, and the event to emit when it has succeeded."""
        lease, payload, verdict, error, tally, cause, locks, run = settlement
        if lease.steps is not None:
            delay = min(verdict.delay, LONGEST) if isinstance(verdict, Release) else 0.0
            lease = self.sealer.ended(lease, payload, forget=isinstance(verdict, Delete), delay=delay)
        if self.attempts is not None:
            lease = self.attempts.settled(lease, payload, run, verdict, cause, error)
        match verdict:
            case Delete():
                state = self.states.done(payload, lease.queue, run)
                ending = self.endings.after(payload, locks=locks)._replace(state=state)
                verb = partial(finish, self._store, lease, run.reports)
                return _ended(verb, ending, done_member(payload, run)), None
            case Release(wanted, uses_try):
                delay = min(wanted, LONGEST)  # a payload may ask for more than the column of a database holds
                state = self.states.released(payload, lease.queue, run, delay, error)
                released = JobReleased(facts, delay, error)
                counted_as = tally if uses_try else NO_TRY
                return lambda: self._store.release(lease, delay, payload.id, counted_as, state), released
            case Fail(reason):
                row = record(payload, lease, self._connection, reason)
                state = self.states.failed(payload, lease.queue, run, reason)
                ending = self.endings.after(payload, reason, locks)._replace(state=state)
                verb = partial(fail, self._store, lease, payload.id, row, self.note)
                return _ended(verb, ending, failed_member(payload, run)), JobFailed(facts, reason)

    def give_back(
        self, lease: Lease, cause: Event | None = None, payload: Payload | None = None, run: Run = NOT_RUN
    ) -> bool:
        """Return a job that had begun to the head of its queue, as if it had not. ``False`` as for ``settle``.

        ``payload`` and ``run``: of its attempt, for its record.
        """
        facts, ended = facts_in(lease), lease
        if lease.steps is not None:
            assert payload  # without it, a place would be written as it is
            ended = self.sealer.ended(lease, payload)
        if self.attempts is not None and payload:
            ended = self.attempts.given_back(ended, payload, run, is_cancelled=cause is not None)
        is_ours = self._carry_out(facts, lease, lambda: self._store.give_back([ended])[0], cause=cause)
        self._noted += [JobGivenBack(facts)] if is_ours else []
        return is_ours

    def give_back_begun(self, payload: Payload, lease: Lease, cause: Event | None = None, run: Run = NOT_RUN) -> bool:
        """As ``give_back``, but first write the job's state: afterwards another worker may have it."""
        if state := self.states.given_back(payload, lease.queue):
            self._ask(lease.queue, lambda: self._store.show([lease], [state]))
        return self.give_back(lease, cause, payload, run)

    def loses(self, lease: Lease, payload: Payload, run: Run) -> None:
        """Record an attempt that has ended with its lease, if that is kept: it is never settled."""
        if self.attempts is not None:
            self.attempts.note_lost(lease, payload, run)

    def give_back_unstarted(self, leases: Sequence[Lease]) -> None:
        """Return jobs that have not begun to the head of their queues; another process may already have done so."""
        for lease in self._ask_of_all(leases, self._store.give_back):
            self.note(JobGivenBack(facts_of_unread(lease)))

    def reclaim(self, queues: Sequence[str], tag: int, since: float, known: Sequence[Lease]) -> None:
        """Return the jobs of lost replies, which the retired ``tag`` reserved, to the head of their queues.

        Raises ``StoreDown`` at once, and ``StoreError``. Arguments as for ``QueueStore.reclaim``.
        """
        for lease in self._store.reclaim(queues, tag, since, known):
            self.note(JobGivenBack(facts_of_unread(lease)))

    def quarantine(self, lease: Lease, reason: str) -> None:
        """Move a payload that cannot be a job to the quarantine, unchanged; ``reason`` is one word."""
        if self._carry_out(unknown_in(lease.queue), lease, lambda: self._store.quarantine(lease, reason)):
            self.note(JobQuarantined(lease.queue, reason))
            if reason == DEADLY:
                self.acquit(lease)  # a person who puts it back wants it read as if it were new

    def blame(self, lease: Lease) -> None:
        """Settle a payload that its worker died reading: give it back, and the second time quarantine it.

        It is not parsed here, so the store counts its deaths by its bytes.
        """
        mark = _mark_of(lease)
        known = self._ask(lease.queue, lambda: self._store.tallies(mark, lease.queue))
        if known and known[0].crashes + 1 >= _MAX_DEATHS:
            self.quarantine(lease, DEADLY)
            return
        answer = self._ask(lease.queue, lambda: self._store.give_back([lease], mark)) if known else None
        if answer and all(answer[0]):
            self.note(JobGivenBack(unknown_in(lease.queue)))

    def accuse(self, lease: Lease) -> bool:
        """Count that a payload which came before is about to be read; whether it has killed its earlier readers.

        For a lone worker, whose death no steward counts. ``acquit`` follows once the payload has been read.
        """
        # After an unanswered call it may have been counted twice: then the next reader decides.
        answer = self._ask(lease.queue, lambda: self._store.count_crash(_mark_of(lease), lease.queue))
        return answer is not None and answer[0] >= _MAX_DEATHS and answer[1]

    def acquit(self, lease: Lease) -> None:
        """Forget the deaths that the payload caused: it has been read, or quarantined."""
        self._ask(lease.queue, lambda: self._store.forget_tallies(_mark_of(lease), lease.queue))

    def unlock(self, facts: JobFacts, payload: Payload, unlocks: Sequence[Unlock]) -> None:
        """Release the unique locks of a job that is about to run."""
        self._outage.insist(lambda: self._store.unlock(unlocks))
        if missed := self._missed_locks.at_start(facts, payload):
            self._listeners.emit(missed)

    def delete(self, leases: Sequence[Lease]) -> bool:
        """Remove done jobs, and settle the members of flows among them; ``False`` if the store refuses one of these."""
        members = [lease for lease in leases if lease.member]
        self._ask_of_all([lease for lease in leases if not lease.member] if members else leases, self._store.delete)
        return False not in [self._end_member(lease) for lease in members]

    def _end_member(self, lease: Lease) -> bool:
        self.mark_flows()
        answer = self._ask(lease.queue, _ended(partial(self._store.finish, lease), NOTHING, lease.member))
        if answer and answer[0]:
            self._note_flow()
        return answer is not None

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
        # "Not ours" after an unanswered call means that that call did the work.
        return is_ours or not certain

    def _ask(self, queue: str, verb: Callable[[], T]) -> tuple[T, bool] | None:
        """The result of ``Outage.insist``; ``None`` when the store refuses the queue, which is noted."""
        answer = self._answer(verb)
        if isinstance(answer, StoreError):
            self.note(StoreRefused(queue, str(answer)))
            return None
        return answer

    def _answer(self, verb: Callable[[], T]) -> tuple[T, bool] | StoreError:
        try:
            return self._outage.insist(verb)
        except StoreDown:
            raise
        except StoreError as error:
            return error

    def _ask_of_all(self, leases: Sequence[Lease], verb: Callable[[Sequence[Lease]], list[bool]]) -> list[Lease]:
        """Those of the leases for which the store has carried it out.

        If it refuses, it is asked by queue, and then for each job alone: a broken one must not hold up the others.
        """
        if not leases:
            return []
        answer = self._answer(partial(verb, leases))
        if not isinstance(answer, StoreError):
            return [lease for lease, is_ours in zip(leases, answer[0], strict=True) if is_ours]
        self._outage.goes_on()  # there may be as many calls as jobs
        if len(leases) > 1:  # the last one first, as each may go to the head of its queue
            parts = [self._ask_of_all(part, verb) for part in reversed(_parts(leases))]
            return [lease for part in reversed(parts) for lease in part]
        refused = StoreRefused(leases[0].queue, str(answer))
        if refused not in self._noted:
            self.note(refused)
        return []


def _ended(verb: Callable[[Ending], bool], ending: Ending, member: MemberEnd | None) -> Callable[[], bool]:
    """The verb with this ending. Of a member of a flow it is that of a plain job, if the database has no flows."""
    if member is None:
        return partial(verb, ending)

    def end() -> bool:
        try:
            return verb(ending._replace(member=member))
        except TableMissing:
            return verb(ending)

    return end


def _parts(leases: Sequence[Lease]) -> list[list[Lease]]:
    """These by queue, since that is what breaks; those of one queue each alone."""
    queues: dict[str, list[Lease]] = {}
    for lease in leases:
        queues.setdefault(lease.queue, []).append(lease)
    return list(queues.values()) if len(queues) > 1 else [[lease] for lease in leases]


def _mark_of(lease: Lease) -> str:
    """The name under which the deaths that a payload causes are counted: by its bytes, as it is not parsed."""
    return f"reading:{digest_of(lease.receipt)}"
