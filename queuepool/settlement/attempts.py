"""The records of attempts that have ended, as JSON: what a store keeps of each in the step that settles it.

    {"ended": SECONDS, "began": SECONDS, "seconds": …, "id": …, "name": …, "attempt": …, "outcome": …, "then": …,
     "error": …, "host": …, "pool": …, "pid": …, "worker": …, "generation": …, "pool_since": SECONDS}

``outcome`` is how the attempt ended: ``done``, ``skipped`` (it had nothing to do), ``released`` (it is tried again),
``failed``, ``cancelled``, ``timed out``, ``lost`` (with its worker) or ``stopped`` (it did not count). ``then`` is what
became of the job, where that is not the same. What is unknown is left out, and so is what every reader can tell: that
an attempt is done, when it ended if it says when it began, and the job's id, name and attempt if its payload is kept.
Times are Unix seconds by the clock of the host that ran it, or of the one that saw its end.
``unsure``: the steward could not know whether the worker had ended the lease itself, with a record of its own; so if
the lease was gone, this one says nothing.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress

from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload, Cancelled, StoreError
from queuepool.events import Event, JobCancelled, JobLost, JobTimedOut
from queuepool.log.tracebacks import summary
from queuepool.payload.envelope import Payload, decode, digest_of
from queuepool.payload.lease import AttemptRecord, Lease
from queuepool.settlement.verdict import Delete, Fail, RanBy, Release, Run, Verdict
from queuepool.stores.attempts import MOST_PAYLOAD, Attempts

_log = logging.getLogger("queuepool")
#: seconds for which those that are settled by nobody are left out after the store has not taken one
_LEFT_OUT = 60.0
#: most characters of an error
_MOST = 500
#: what becomes of a job by its verdict, and how an attempt has ended that somebody else has ended
_THEN = {Delete: "done", Release: "released", Fail: "failed"}
_ENDS = {JobLost: "lost", JobTimedOut: "timed out", JobCancelled: "cancelled"}


class AttemptRecords:
    """Adds records to the leases of attempts that end: kept for ``keep`` seconds, made by this process of ``pool``."""

    def __init__(self, keep: float, pool: str, by: RanBy, store: Attempts | None = None) -> None:
        """``store``: takes the records of attempts that are settled by nobody."""
        self._keep = keep
        self._store = store
        #: until when those are left out (monotonic)
        self._left_out_until = 0.0
        self._pool = fields_of({"host": os.uname().nodename, "pool": pool})
        self._by = self._pool + fields_of(by._asdict())

    def done(self, lease: Lease, payload: Payload, began: float, seconds: float) -> Lease:
        """For a job that has succeeded here, as nearly all do: its worker does little else for it."""
        text = f'"began":{began:.3f},"seconds":{seconds:.6f}'
        if lease.row or not payload.identified or len(lease.receipt) > MOST_PAYLOAD:
            text += fields_of(_job(payload))
        record = AttemptRecord(payload.id, text, self._by, self._keep)
        return Lease(lease.queue, lease.receipt, lease.tag, lease.row, record)

    def settled(
        self,
        lease: Lease,
        payload: Payload,
        run: Run,
        verdict: Verdict,
        cause: Event | None,
        error: BaseException | None,
    ) -> Lease:
        """For one with this verdict, to which ``cause`` has led; ``error``: why it is released."""
        outcome, then = _outcome_of(verdict, cause, run), _THEN[type(verdict)]
        error = verdict.error if isinstance(verdict, Fail) else error
        words = None if error is None else summary(error)[:_MOST]
        facts = {"outcome": outcome, "then": None if then == outcome else then, "error": words}
        return self._ended(lease, payload, run, facts)

    def done_by(self, lease: Lease, by: RanBy) -> Lease:
        """For a job that another process has done, and not deleted yet: nobody knows when it ran."""
        with suppress(BadPayload):
            payload = decode(lease.receipt, lease.attempts)
            return self._ended(lease, payload, Run(by=by), {"outcome": "done", "unsure": True})
        # A job has overwritten it; but what is ended together has records, or has none.
        job_id = digest_of(lease.receipt)
        text = fields_of({"ended": round(time.time(), 3), "id": job_id, "unsure": True}).removeprefix(",")
        return lease._replace(record=AttemptRecord(job_id, text, self._pool + fields_of(by._asdict()), self._keep))

    def given_back(self, lease: Lease, payload: Payload, run: Run, *, is_cancelled: bool) -> Lease:
        """For one that had begun, and whose job waits as if it had not."""
        outcome = "cancelled" if is_cancelled else "stopped"
        return self._ended(lease, payload, run, {"outcome": outcome, "then": "queued"})

    def note_lost(self, lease: Lease, payload: Payload, run: Run) -> None:
        """Record one that has ended with its lease, since another worker may have the job.

        If the store does not take it, it is left out, and so are others for a minute: many may have ended at once, as
        the store is away, and who waits for it has jobs to settle.
        """
        record = self._ended(lease, payload, run, {"outcome": "lost"}).record
        if self._store and record and time.monotonic() >= self._left_out_until:
            try:
                self._store.note(lease.queue, [record])
            except StoreError as error:
                self._left_out_until = time.monotonic() + _LEFT_OUT
                _log.warning("an attempt is not recorded: %s", error)

    def _ended(self, lease: Lease, payload: Payload, run: Run, facts: Mapping[str, object]) -> Lease:
        ended, is_timed = run.ended or time.time(), run.began is not None and run.ended is not None
        seconds = max(round(ended - (run.began or 0.0), 6), 0.0) if is_timed else None
        about = {"ended": round(ended, 3), "began": run.began and round(run.began, 3), "seconds": seconds}
        text = fields_of({**about, **_job(payload), **facts}).removeprefix(",")
        by = self._pool + fields_of(run.by._asdict()) if run.by else self._by
        return lease._replace(record=AttemptRecord(payload.id, text, by, self._keep))


def _job(payload: Payload) -> dict[str, object]:
    return {"id": payload.id, "name": payload.name, "attempt": payload.attempts}


def attempt_records(settings: PoolSettings, by: RanBy, store: Attempts) -> AttemptRecords | None:
    """Those of this pool, made by this process; ``None`` if they are not kept."""
    return AttemptRecords(settings.keep_done, settings.name, by, store) if settings.keep_done else None


def _outcome_of(verdict: Verdict, cause: Event | None, run: Run) -> str:
    if isinstance(cause, (JobLost, JobTimedOut, JobCancelled)):
        return _ENDS[type(cause)]
    if isinstance(verdict, Fail) and isinstance(verdict.error, Cancelled):
        return "cancelled"
    return "skipped" if run.cancelled else _THEN[type(verdict)]


def fields_of(facts: Mapping[str, object]) -> str:
    """As in JSON, each with a comma before it; without those that are unknown."""
    return "".join(f',"{key}":{json.dumps(value)}' for key, value in facts.items() if value is not None)
