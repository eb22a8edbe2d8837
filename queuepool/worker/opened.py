"""A reserved job whose payload has been read."""

from __future__ import annotations

import time
from typing import NamedTuple

from queuepool.events import JobFacts, JobProcessed
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import facts_of
from queuepool.worker.plan import Plan


class Attempt(NamedTuple):
    """What the worker knows of one attempt at it."""

    lease: Lease
    payload: Payload
    plan: Plan

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    def processed(self, duration: float) -> JobProcessed:
        """The event of a job that has just returned after ``duration`` seconds."""
        return JobProcessed(self.facts, duration, self.payload.waited(time.time() - duration))
