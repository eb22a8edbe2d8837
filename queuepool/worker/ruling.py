"""Ruling on an attempt that has ended: the facts are gathered here, the verdict is ``settlement.verdict``'s."""

from __future__ import annotations

from queuepool.jobs.current_job import Current
from queuepool.jobs.retry import Retry
from queuepool.payload.lease import Tallies
from queuepool.settlement.outage import Outage
from queuepool.settlement.verdict import Delete, Fail, Verdict, judge, judge_release, needs_tallies
from queuepool.stores.contract import QueueStore
from queuepool.worker.preparation import Attempt


class Ruler:
    """Rules on one worker's attempts."""

    def __init__(self, store: QueueStore, outage: Outage, unknown_retry: float) -> None:
        self._store = store
        self._outage = outage
        self._unknown_retry = unknown_retry

    def now(self) -> float:
        """The store's clock, in Unix seconds. Waits out an outage."""
        return self._outage.insist(self._store.now)[0]

    def rule(self, attempt: Attempt, job: Current, error: BaseException | None, now: float) -> Verdict:
        """What the handler asked for counts before what it raised. Waits out an outage if the tallies are needed."""
        requested = job.verdict
        if isinstance(requested, (Delete, Fail)):
            return requested
        payload, policy, tallies = attempt.payload, attempt.plan.policy, Tallies()
        if not job.is_final and needs_tallies(payload.attempts, policy):
            tallies = self._outage.insist(lambda: self._store.tallies(payload.id))[0]
        if requested is not None:
            return judge_release(requested, payload.name, payload.attempts, policy, tallies, now)
        after = error.after if isinstance(error, Retry) else job.retry_after
        facts, wait = (payload.attempts, policy, tallies, now), self._unknown_retry
        return judge(error, *facts, is_final=job.is_final, after=after, job_id=payload.id, unknown_retry=wait)
