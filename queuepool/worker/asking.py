"""What is asked of the store before a job begins; of most jobs, nothing."""

from __future__ import annotations

from functools import partial

from queuepool.errors import BadArguments
from queuepool.jobs.current_job import Current
from queuepool.settlement.facts import facts_of
from queuepool.settlement.verdict import may_start
from queuepool.worker.context import WorkerContext
from queuepool.worker.flows import FlowsOfWorker
from queuepool.worker.limits import LimitsOfWorker
from queuepool.worker.parking import Prepare
from queuepool.worker.plan import Plan
from queuepool.worker.step_keeper import went_on


class AskFirst:
    """Asks while the job still counts as not started, and has no timeout yet."""

    def __init__(self, context: WorkerContext, flows: FlowsOfWorker, prepare: Prepare) -> None:
        self._store = context.store
        self._outage = context.outage
        self._settler = context.settler
        self._flows = flows
        self.limits = LimitsOfWorker(context, prepare)

    def ask(self, job: Current, plan: Plan) -> float | None:
        """Read the clock, look at its flow, have it enter its limits, and release its locks.

        Returns the store's clock, if the job can expire, else 0.0; ``None`` if it does not begin now. What keeps it
        from beginning otherwise, and under which name it holds places, is noted on the job.
        """
        now = 0.0
        if plan.has_end:
            now = self._outage.insist(self._store.now)[0]
            job.went_on = self._outage.insist(partial(went_on, job, now))[0]
        if plan.is_member:
            job.joins(self._flows.begin(job.payload))
        if plan.limits and self._needs_places(job, plan, now) and not self._enters(job, plan):
            return None
        if plan.unlocks:
            self._settler.unlock(facts_of(job.payload, job.queue), job.payload, plan.unlocks)
        return now

    def _needs_places(self, job: Current, plan: Plan, now: float) -> bool:
        """Whether it is to run at all."""
        is_left_out = job.flow is not None and job.flow.left_out
        return not is_left_out and may_start(job.name, job.attempts, plan.policy, now) is None

    def _enters(self, job: Current, plan: Plan) -> bool:
        try:
            holder = self.limits.enter(job, plan)
        except BadArguments as error:
            job.lacks = error
            return True
        if holder:
            job.holder = holder
        return holder is not None
