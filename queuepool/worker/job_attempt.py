"""What is known of one attempt at a job, from its reservation to its settlement."""

from __future__ import annotations

import time
from dataclasses import dataclass

from queuepool.events import Event, JobFacts, JobProcessed
from queuepool.jobs.current_job import Current
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.settlement.facts import facts_of
from queuepool.settlement.settler import Settlement
from queuepool.settlement.verdict import Run, Verdict
from queuepool.worker.plan import Plan


@dataclass(slots=True, eq=False)
class JobAttempt:
    """One attempt at a job. Each step adds what it finds; the worker keeps none of it."""

    lease: Lease
    #: its number among the held jobs on the board
    number: int
    payload: Payload
    plan: Plan
    #: what its handler and its hooks see of it
    job: Current
    #: the store's clock before it began, in Unix seconds, if the job can expire; else 0
    now: float = 0.0
    #: when it began, in Unix seconds by this host's clock, and for how many seconds it ran
    began: float = 0.0
    duration: float = 0.0
    error: BaseException | None = None
    #: when (monotonic) it became known that the job may have killed workers, so that it runs beside no other such job;
    #: 0.0: it is not a suspect
    suspect_since: float = 0.0
    #: in how many workers it ran that died without proof of which job killed them, as far as the store was asked
    suspicions: int = 0
    #: whether another worker may have the job, so that nothing is settled
    is_lost: bool = False
    #: the event that the settlement begins with, if the attempt has run past its deadline
    cause: Event | None = None
    #: ``None`` until it is ruled on; set at once, to ``Delete``, if the job has succeeded
    verdict: Verdict | None = None

    @property
    def facts(self) -> JobFacts:
        return facts_of(self.payload, self.lease.queue)

    @property
    def processed(self) -> JobProcessed:
        """The event of a job that has just returned."""
        return JobProcessed(self.facts, self.duration, self.payload.waited(time.time() - self.duration))

    @property
    def run(self) -> Run:
        """What those that follow the job see of it, once it is over."""
        if not self.began:  # cancelled before
            return self.job.run
        return self.job.run._replace(began=self.began, ended=self.began + self.duration)

    @property
    def ending_lease(self) -> Lease:
        """The lease as it is to end: with its places, and what becomes of the job's steps, which are over by this."""
        lease = self.lease._replace(holder=self.job.holder) if self.job.holder else self.lease
        return lease if self.job.steps is None else lease._replace(steps=self.job.steps.end())

    @property
    def is_told_by_end(self) -> bool:
        """Whether the board shows it as done only after its hooks or its settlement.

        The steward could not tell from the board all that follows from its end.
        """
        return self.plan.is_member or self.job.run.reports is not None

    def settlement(self, verdict: Verdict) -> Settlement:
        """The settlement to write to the store."""
        policy, run = self.plan.policy, self.run
        if flow := self.job.flow:
            run = run._replace(children=tuple(flow.children))
        # Possibly only the handler sets for how long the job's state is kept.
        payload = self.payload.tracked_for(self.plan.track)
        tally = "exceptions" if self.error is not None and policy.max_exceptions is not None else ""
        return Settlement(self.ending_lease, payload, verdict, self.error, tally, self.cause, policy.locks, run)
