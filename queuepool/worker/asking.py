"""What is asked of the store before a job begins; of most jobs, nothing."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.errors import BadArguments
from queuepool.jobs.current_job import Current
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import may_start
from queuepool.worker.context import WorkerContext
from queuepool.worker.flows import FlowsOfWorker
from queuepool.worker.limits import LimitsOfWorker
from queuepool.worker.plan import Plan


class Admission(NamedTuple):
    """A job may begin. ``holder``: the name under which it holds places, which end with its lease; empty = none.

    ``now``: the store's clock, if the job can expire; else 0.
    """

    holder: str
    now: float


class AskFirst:
    """Asks while the job still counts as not started, and has no timeout yet."""

    def __init__(self, context: WorkerContext) -> None:
        self._store = context.store
        self._outage = context.outage
        self._settler = context.settler
        self._flows = FlowsOfWorker(context)
        self._limits = LimitsOfWorker(context)

    def ask(self, job: Current, plan: Plan) -> Admission | None:
        """Read the clock, look at its flow, have it enter its limits, and release its locks; ``None`` if it is parked.

        What keeps it from beginning otherwise is noted on the job.
        """
        now, holder = self._outage.insist(self._store.now)[0] if plan.has_end else 0.0, ""
        if member := plan.member:
            job.joins(self._flows.begin(job.payload, member))
        if plan.limits and self._needs_places(job, plan, now):
            found = self._enter(job, plan)
            if found is None:
                return None
            holder = found
        if plan.unlocks:
            self._settler.unlock(facts_of(job.payload, job.queue), job.payload, plan.unlocks)
        return Admission(holder, now)

    def _needs_places(self, job: Current, plan: Plan, now: float) -> bool:
        """Whether it is to run at all."""
        is_left_out = job.flow is not None and job.flow.left_out
        return not is_left_out and may_start(job.name, job.attempts, plan.policy, now) is None

    def _enter(self, job: Current, plan: Plan) -> str | None:
        try:
            return self._limits.enter(job, plan)
        except BadArguments as error:
            job.lacks = error
            return ""
