"""Preparing a reserved job: its payload is read, and how it is to be run is looked up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from queuepool.config.settings import PoolSettings
from queuepool.events import JobFacts, JobProcessed, PayloadOdd
from queuepool.events.listeners import Listeners
from queuepool.jobs.registry import Registry
from queuepool.payload.envelope import Payload, decode
from queuepool.payload.lease import Lease
from queuepool.payload.signing import signer_of
from queuepool.settlement.settler import facts_of
from queuepool.worker.plan import Plan, Plans


class Attempt(NamedTuple):
    """What the worker knows of one attempt at a job."""

    lease: Lease
    payload: Payload
    plan: Plan

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    def processed(self, duration: float) -> JobProcessed:
        """The event of a job that has just returned after ``duration`` seconds."""
        return JobProcessed(self.facts, duration, self.payload.waited(time.time() - duration))


class Preparer:
    """Prepares one worker's attempts. ``pause`` is called before an event is emitted."""

    def __init__(
        self, pool: PoolSettings, registry: Registry, listeners: Listeners, pause: Callable[[], object]
    ) -> None:
        self._signer = signer_of(pool.connection.signing, pool.connection.signing_keys)
        self._plans = Plans(pool, registry)
        self._listeners = listeners
        self._pause = pause
        #: (name of the job, warning)
        self._warned: set[tuple[str, str]] = set()

    def prepare(self, lease: Lease) -> Attempt:
        """Raises ``BadPayload``. What was not understood in a payload is reported once for each name."""
        signer, raw, attempts = self._signer, lease.receipt, lease.attempts
        payload = signer.open(raw, lease.queue, attempts) if signer else decode(raw, attempts)
        plan = self._plans.of(payload)
        attempt = Attempt(lease, payload, plan)
        if payload.oddities or plan.warning:
            self._warn(attempt)
        return attempt

    def _warn(self, attempt: Attempt) -> None:
        self._pause()
        name = attempt.payload.name
        for warning in filter(None, (*attempt.payload.oddities, attempt.plan.warning)):
            if (name, warning) not in self._warned:
                self._warned.add((name, warning))
                self._listeners.tell(PayloadOdd(attempt.facts, warning))
