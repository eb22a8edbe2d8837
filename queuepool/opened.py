"""A reserved job that has been read: what the worker knows of it."""

from __future__ import annotations

import time
from typing import NamedTuple

from queuepool.events import JobFacts, JobProcessed
from queuepool.payload import OBJECT_JOB, Payload
from queuepool.php import arguments_in
from queuepool.plans import Plan
from queuepool.settle import facts_of
from queuepool.stores.base import Lease


class Attempt(NamedTuple):
    """One attempt at it."""

    lease: Lease
    payload: Payload
    plan: Plan

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    @property
    def data(self) -> object:
        """The handler's arguments; of Laravel's object jobs, the properties."""
        payload = self.payload
        return arguments_in(payload.data) if payload.terms.job == OBJECT_JOB else payload.data

    def processed(self, duration: float) -> JobProcessed:
        """It has just returned, after so long."""
        return JobProcessed(self.facts, duration, self.payload.waited(time.time() - duration))
