"""What a worker shows of itself: its state and deadline on the board, its alarm, and its line in ``ps``."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import IO

from queuepool.board.board import Slot, State
from queuepool.board.held_jobs import SAYS_0
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.payload.envelope import Payload
from queuepool.unix import proc
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.batch import HeldBatch
from queuepool.worker.meter import Meter
from queuepool.worker.plan import Plan

#: seconds for which a measurement of resident memory is reused
_RSS_LASTS = 0.05
#: seconds by which a wait may end late even if the store does not answer
_LATE = 4.0
#: most names of jobs whose growth is kept apart
_MOST = 256


class SlotWriter:
    """Used by the slot's worker alone; every process may read the slot. ``batch``: the jobs that the worker holds.

    ``stall_timeout``: seconds a round may take. ``meters``: those of the pool; a lone worker has none to share.
    """

    def __init__(
        self,
        slot: Slot,
        pool: str,
        alarm: Alarm,
        signals: WorkerSignals,
        *,
        stall_timeout: float,
        meters: MeterMemory | None = None,
    ) -> None:
        self.slot = slot
        self.batch = HeldBatch(slot)
        self.meter = Meter(SlotMeters(meters, slot))
        self.growth = Growth()
        #: the file for who asks where the worker is in its code; none of a lone worker
        self.stacks: IO[bytes] | None = None
        self._pool = pool
        self._alarm = alarm
        self._signals = signals
        self._stall_timeout = stall_timeout
        self._rss_at = 0.0
        self._rss = 0.0
        self._has_run = True
        self._plan: Plan | None = None
        self._queue = ""
        self._about = ""
        self._has_progress = False

    def show(self, state: State) -> None:
        """Show the state of a worker that runs no job."""
        if self.slot.state != state:
            self.slot.state = state
            self._title(f"{state.name.lower()} done={self.slot.done}")

    def alive(self) -> None:
        """No job runs: disarm the alarm. If the next call does not come in time, the master kills us."""
        self.batch.ended()
        if self._has_run:
            self._alarm.disarm()
        self.slot.deadline = time.monotonic() + self._stall_timeout

    def waits(self, seconds: float) -> None:
        """A wait of ``seconds`` for jobs begins. It takes less time than a round may, so its deadline is earlier."""
        self.slot.deadline = time.monotonic() + seconds + min(self._stall_timeout, _LATE)

    def begins(self, payload: Payload, queue: str, plan: Plan, number: int) -> float:
        """The held job with this number is about to run: show it, and set its deadline for the kernel and the master.

        Returns the time in Unix seconds.
        """
        slot, now = self.slot, time.time()
        if plan is not self._plan or queue != self._queue:  # most jobs are like the one before
            self._describe(payload.name, queue, plan)
        slot.job_id, slot.attempt, slot.since = payload.id, payload.attempts, now
        if self._has_progress:
            self._clear_progress()
        self.meter.begins(payload, now)
        self.batch.started(number)
        slot.state = State.BUSY
        self._title(f"{self._about} id={_word(payload.id)} attempt={payload.attempts} since={_at(int(now))}")
        self.arm(plan.timeout)
        return now

    def _describe(self, name: str, queue: str, plan: Plan) -> None:
        shown = name if plan.handler else "unknown"  # an unregistered name is never shown
        self.slot.job, self.slot.queue, self.slot.policy, self.slot.track = shown, queue, plan.text, plan.track
        self._plan, self._queue = plan, queue
        self.meter.turn(queue, shown)
        self._about = f"busy queue={_word(queue)} job={_word(shown)}"

    def progress(self, fraction: float, note: str) -> None:
        """Show how far the running job is; if the job is tracked, the steward writes that to the store."""
        self._has_progress = True
        self.slot.note = note
        self.slot.progress = fraction or SAYS_0

    def _clear_progress(self) -> None:
        self._has_progress = False
        self.slot.progress, self.slot.note = 0.0, ""

    def arm(self, timeout: float) -> None:
        """Set a deadline in ``timeout`` seconds, 0 = none: the kernel's alarm, and behind it the master."""
        self._has_run = True
        self.slot.deadline = time.monotonic() + timeout if timeout else 0.0
        self._alarm.arm(timeout)

    def is_intact(self) -> bool:
        """Whether the worker's open files are still the same: a job may have closed them all."""
        return self._alarm.is_intact()

    def is_open(self) -> bool:
        """Like ``is_intact`` but quicker: misses files that a job has closed and opened again."""
        return self._alarm.is_open()

    def rss(self) -> float:
        """Resident MB, at most 50 ms old."""
        if time.monotonic() - self._rss_at >= _RSS_LASTS:
            self.tidy()
        return self._rss

    def tidy(self) -> None:
        """After user code has run: restore the signal handlers and the alarm, and measure memory."""
        if self._has_run:
            self._signals.listen()
            self._alarm.prepare()
            rss = proc.resident_mb(os.getpid())
            if self._rss:
                self.growth.note(self.ran_last, rss - self._rss)
            self._rss_at, self._rss = time.monotonic(), rss
            self.slot.rss = int(self._rss)
            self._has_run = False

    @property
    def ran_last(self) -> str:
        """The name of the last job that has begun; empty if none has."""
        return self.slot.job

    def leave(self) -> None:
        """Mark a clean exit; an exit without this mark counts as a death."""
        self.slot.state = State.STOPPING
        self.slot.exited_cleanly = 1

    def _title(self, rest: str) -> None:
        proc.show(f"queuepool: worker {self.slot.number} [{self._pool}] {rest}")


class Growth:
    """How much a worker has grown, in MB, by the names of jobs.

    Noted when memory is measured anyway: between jobs, and seldom. If several quick jobs ran between two measurements,
    the last one is charged for all.
    """

    def __init__(self) -> None:
        self._by_job: dict[str, float] = {}

    def note(self, job: str, megabytes: float) -> None:
        """The worker has grown by this much since the last measurement, and ran this job last."""
        if job and megabytes > 0 and (job in self._by_job or len(self._by_job) < _MOST):
            self._by_job[job] = self._by_job.get(job, 0.0) + megabytes

    @property
    def most(self) -> tuple[str, float | None]:
        """The job in which it has grown most, and by how much; the name is empty if it has not grown."""
        job = max(self._by_job, key=self._by_job.__getitem__, default="")
        return job, round(self._by_job[job], 1) if job else None


@lru_cache(maxsize=1)
def _at(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _word(text: str) -> str:
    """A value without spaces, so that the title stays a row of words."""
    return "_".join(text.split()) or "-"
