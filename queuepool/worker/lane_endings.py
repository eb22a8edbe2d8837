"""Settle what has ended in lanes. What belongs to a node that is away is put off, so that the other lanes go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from queuepool.errors import PartDown, StoreDown, StoreError
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import Settler
from queuepool.worker.job_attempt import JobAttempt
from queuepool.worker.lane_board import LaneBatch
from queuepool.worker.lane_runner import LaneRunner
from queuepool.worker.prefetch import Reports


class LaneEndings:
    """What was put off keeps its lane, and so its lease: there are twice as many lanes as jobs that may run."""

    def __init__(self, batch: LaneBatch, runner: LaneRunner, settler: Settler, reports: Reports) -> None:
        self._batch = batch
        self._runner = runner
        self._settler = settler
        self._reports = reports
        #: the queues of which something is put off, as their nodes did not answer
        self.away: set[str] = set()
        #: when the first of the jobs ended that wait to be deleted (monotonic)
        self.done_at = 0.0

    def conclude(self, attempt: JobAttempt) -> None:
        """Settle this attempt, which is over, or note it as done. Raises ``StoreDown``, and what the store refuses."""
        lane = attempt.number
        self._batch.settles(lane)  # if we hang in what is called for it, the steward knows for whom
        try:
            is_done = self._runner.conclude(attempt)
        except PartDown:
            self._batch.settles(None)
            self._batch.put_off.append(attempt)
            self.away.add(attempt.lease.queue)
            return
        except StoreDown:
            self._batch.settles(None)
            raise
        except StoreError:
            self._batch.settles(None)
            self._runner.abandon(attempt)
            self._batch.free(lane)  # the store refuses any verdict: its lease ends by itself
            raise
        self._batch.settles(None)  # not after any other exception: that one ends the worker
        if is_done:
            self.done_at = self.done_at if self._batch.done else time.monotonic()
            lease = attempt.lease if self._settler.attempts is None else self._runner.done_lease(attempt)
            (self._batch.undone if lease.queue in self.away else self._batch.done).append((lane, lease))
        else:
            self._batch.free(lane)

    def try_again(self) -> None:
        """Settle what was put off and what is done, as far as the nodes answer by now."""
        batch = self._batch
        self.away.clear()
        for _ in range(len(batch.put_off)):
            attempt = batch.put_off.popleft()
            if attempt.lease.queue in self.away:
                batch.put_off.append(attempt)
            else:
                self.reporting(partial(self.conclude, attempt))
        batch.done, batch.undone = batch.undone + batch.done, []
        self.delete_done()

    def delete_done(self) -> None:
        """Delete what is done, but for what is put off."""
        if away := self.away_from(self._settler.delete, [lease for _, lease in self._batch.done]):
            self.away |= away
            self._batch.put_off_deletion(away)
        self._batch.deleted()
        self._settler.emit_noted()

    def away_from(self, verb: Callable[[Sequence[Lease]], object], leases: Sequence[Lease]) -> set[str]:
        """Do this to all of the leases; returns the queues for which it was not done, as their nodes are away."""
        try:
            verb(leases)
        except PartDown:
            queues = {lease.queue for lease in leases}
            if len(queues) == 1:
                return queues
            parts = [[lease for lease in leases if lease.queue == queue] for queue in queues]
            return set[str]().union(*(self.away_from(verb, part) for part in parts))
        return set()

    def reporting(self, settle: Callable[[], object]) -> None:
        """Call it; an error of the store about one job is reported, and does not end the others."""
        try:
            settle()
        except StoreDown:
            raise
        except StoreError as error:
            self._reports.refused({("", str(error))})
