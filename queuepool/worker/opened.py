"""A reserved job that has been read: what the worker knows of it."""

from __future__ import annotations

import time
from typing import NamedTuple

from queuepool.events import JobFacts, JobProcessed
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import facts_of
from queuepool.worker.plan import Plan


class Attempt(NamedTuple):
    """One attempt at it."""

    lease: Lease
    payload: Payload
    plan: Plan

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    def processed(self, duration: float) -> JobProcessed:
        """It has just returned, after so long."""
        return JobProcessed(self.facts, duration, self.payload.waited(time.time() - duration))
