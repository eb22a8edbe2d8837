"""The jobs of a pool that have ended lately, for the lists of Laravel Horizon: from records that are kept anyway.

Those that are done are among the kept attempts, if there are any (``keep_done``). Those that have failed are among the
failed jobs, with their traces; if those are in another store, among the attempts, too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any

from queuepool.board.record import DAMAGED
from queuepool.config.settings import PoolSettings
from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.stores.attempts import KeptAttempt
from queuepool.stores.factory import Stores
from queuepool.stores.horizon import ListedJob
from queuepool.stores.records import FailedJob

#: most sheets of records, and most of their bytes, that are read of a queue at a time; and most records of failed jobs
_SHEETS, _BYTES, _FAILED = 100, 128 * 1024, 20
#: most jobs that are listed at a time
MOST = 200
#: seconds for which it is remembered what was listed: what ended earlier than that is not listed
_REMEMBERED = 60.0


class EndedJobs:
    """Finds them. It reads a bounded number, and leaves out the others."""

    def __init__(self, pool: PoolSettings, stores: Stores) -> None:
        self._pool = pool
        self._stores = stores
        self._place = {"host": os.uname().nodename, "pool": pool.name}
        self._has_records = pool.connection.failed in ("", "redis") and not pool.connection.failed_url
        #: when each that was listed ended, by its id and that time
        self._listed: dict[tuple[str, float], float] = {}

    def found(self, queues: Iterable[str], failed: int) -> list[ListedJob]:
        """The latest of these queues; ``failed``: about how many have failed. Raises ``StoreError``."""
        now = time.time()
        self._listed = {key: ended for key, ended in self._listed.items() if ended > now - _REMEMBERED}
        done = (job for job in self._done(queues) if job.ended > now - _REMEMBERED)
        fresh = {(job.id, job.ended): job for job in (*done, *self._failed(failed))}
        new = [job for key, job in fresh.items() if key not in self._listed]
        return sorted(new, key=lambda job: job.ended)[-MOST:]

    def note(self, jobs: Iterable[ListedJob]) -> None:
        """These are listed now."""
        self._listed |= {(job.id, job.ended): job.ended for job in jobs}

    def _done(self, queues: Iterable[str]) -> Iterator[ListedJob]:
        if not self._pool.keep_done:
            return
        attempts: Any = self._stores.attempts  # Redis', as Horizon is
        for queue in queues:
            for kept in attempts.latest(queue, _SHEETS, _BYTES):
                with suppress(BadPayload, *DAMAGED):
                    if job := self._of_attempt(kept):
                        yield job

    def _of_attempt(self, kept: KeptAttempt) -> ListedJob | None:
        """The job of an attempt of this pool that was the job's last one, if its payload is kept."""
        facts = json.loads(kept.text)
        outcome = facts.get("then") or facts.get("outcome", "done")
        is_listed = outcome in (("done",) if self._has_records else ("done", "failed"))
        if not (is_listed and kept.payload and not kept.is_lost and facts.items() >= self._place.items()):
            return None
        payload = decode(kept.payload)
        began = float(facts.get("began") or 0.0)
        ended = float(facts.get("ended") or began + facts.get("seconds", 0.0))
        error = str(facts.get("error") or facts.get("outcome")) if outcome == "failed" else ""
        known: dict[str, Any] = {
            "id": payload.id,
            "name": payload.name,
            "queue": kept.queue,
            "began": began,
            "ended": ended,
        }
        return ListedJob(**known, **_shown(kept.payload, began or ended), exception=error)

    def _failed(self, number: int) -> Iterator[ListedJob]:
        if number and self._has_records:
            since = self._stores.queue.now() - _REMEMBERED  # not by this host's clock, which may be wrong
            for one in self._stores.failed.page(None, min(number, _FAILED)):
                with suppress(*DAMAGED):
                    if one.queue in self._pool.queues and one.failed_at > since:
                        yield _of_record(one)


def _of_record(one: FailedJob) -> ListedJob:
    known: dict[str, Any] = {"id": one.id, "name": one.name, "queue": one.queue, "began": 0.0, "ended": one.failed_at}
    return ListedJob(**known, **_shown(one.payload.encode(), one.failed_at), exception=one.exception or "failed")


def _shown(raw: bytes, at: float) -> dict[str, Any]:
    """The payload as the dashboard reads it, and what this says of the job, which was there ``at`` that time."""
    facts: dict[str, Any] = json.loads(raw)
    said = float(facts.get("pushedAt") or facts.get("createdAt") or at)
    pushed = said if isfinite(said) else at
    own = {"pushedAt": facts.get("pushedAt") or f"{pushed:.4f}", "tags": facts.get("tags") or []}
    return {"payload": json.dumps(facts | own), "created": pushed, "retry_of": str(facts.get("retry_of") or "")}
