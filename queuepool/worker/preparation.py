"""Preparing a reserved job: its payload is read, and how it is to be run is looked up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from queuepool.events import JobFacts, JobProcessed
from queuepool.jobs.job_options import Options
from queuepool.jobs.registry import arguments_for
from queuepool.payload.ending import Unlock
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.signing import signer_of
from queuepool.payload.unique_locks import names_of
from queuepool.payload.wrappers import Claim
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import Locks
from queuepool.worker.context import WorkerContext
from queuepool.worker.oddities import Oddities
from queuepool.worker.plan import Plan, Plans


class Attempt(NamedTuple):
    """What the worker knows of one attempt at a job."""

    lease: Lease
    payload: Payload
    plan: Plan
    #: the unique locks to release before the job runs
    unlocks: tuple[Unlock, ...] = ()

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    @property
    def followed(self) -> Payload:
        """The payload with the time for which the job's state is kept, which its handler may say alone."""
        return self.payload.tracked_for(self.plan.track)

    def processed(self, duration: float) -> JobProcessed:
        """The event of a job that has just returned after ``duration`` seconds."""
        return JobProcessed(self.facts, duration, self.payload.waited(time.time() - duration))


class Preparer:
    """Prepares one worker's attempts. ``pause`` is called before an event is emitted."""

    def __init__(self, context: WorkerContext, pause: Callable[[], object]) -> None:
        connection = context.pool.connection
        self._signer = signer_of(connection.signing, connection.signing_keys)
        self._plans = Plans(context.pool, context.registry)
        self._endings = context.settler.endings
        self._oddities = Oddities(connection, context.listeners, self._endings, context.store.locks_of, pause)

    def prepare(self, lease: Lease) -> Attempt:
        """Raises ``BadPayload``. What was not understood in a payload is reported once for each name."""
        signer, raw, attempts = self._signer, lease.receipt, lease.attempts
        payload = signer.verify(raw, lease.queue, attempts) if signer else decode(raw, attempts)
        plan = self._plans.of(payload)
        attempt = Attempt(lease, payload, plan)
        claim = self._endings.claim(payload) if plan.is_object_job else None
        if plan.handler and (plan.is_unique or (claim and claim.until_start)):
            attempt = self._unique(attempt, plan.handler.options, claim)
        self._oddities.report(payload, lease.queue, attempt.plan, claim)
        return attempt

    def _unique(self, attempt: Attempt, options: Options, claim: Claim | None) -> Attempt:
        """The attempt at a job of whose unique lock more is known; its policy has that for the steward."""
        payload, plan = attempt.payload, attempt.plan
        try:
            given = self._given(payload, options)
        except Exception as error:  # noqa: BLE001 - the application's function; the job itself may run
            why = f"its unique_id raised {error!r}: its lock, if it has one, stays held"
            return attempt._replace(plan=plan._replace(warning=why))
        if options.unique_until == "start" or (claim and claim.until_start):
            held = self._endings.held_locks(payload, given)
            # Later attempts by owner only: another job may hold the lock by now.
            first = tuple(lock for lock in held if lock.owner or payload.attempts <= 1)
            return attempt._replace(plan=plan.with_locks(()), unlocks=first)
        return attempt._replace(plan=plan.with_locks(given))

    def _given(self, payload: Payload, options: Options) -> Locks:
        """The names that the lock may have by the handler's ``unique_id``; ``None`` if the payload names it itself."""
        if not options.unique_id or self._endings.said_locks(payload):
            return None
        args, kwargs = arguments_for(options.unique_id, self._endings.commands.data_of(payload))
        identity = str(options.unique_id(*args, **kwargs))
        identity.encode()  # with a lone surrogate no store could be asked for the lock, nor end the job
        return names_of(payload.name, payload.options.display_name, identity)
