"""What a worker shows of itself: its state and deadline on the board, its alarm, its line in ``ps``, and what it holds.

The jobs that it holds (``HeldBatch``), each with its stage, are in its memory, and on the board for the steward, which
settles them if the worker dies.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import IO

from queuepool.board.board import Slot, State
from queuepool.board.held_jobs import SAYS_0, Stage
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.errors import StoreError
from queuepool.payload.envelope import Payload
from queuepool.payload.lease import Lease
from queuepool.unix import proc
from queuepool.unix.signals import Alarm, WorkerSignals
from queuepool.worker.invoker import Invoker
from queuepool.worker.meter import Meter
from queuepool.worker.plan import Plan

#: seconds for which a measurement of resident memory is reused
_RSS_LASTS = 0.05
#: seconds by which a wait may end late even if the store does not answer
_LATE = 4.0
#: most names of jobs whose growth is kept apart
_MOST = 256
#: seconds that a held job may wait and still be started
_FRESH = 1.0
#: plain numbers take a third less time to write than enum members, and each job writes all of them
_READING, _RUNNING, _DONE = int(Stage.READING), int(Stage.RUNNING), int(Stage.DONE)


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
        #: what runs the jobs, if one at a time
        self.invoker: Invoker | None = None
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
        self.slot.is_plain = int(plan.is_plain)
        if self.invoker:
            self.invoker.awaits = self.may_end if plan.is_plain else None
        self.meter.turn(queue, shown)
        self._about = f"busy queue={_word(queue)} job={_word(shown)}"

    def may_end(self) -> None:
        """The running job can end by itself if it is cancelled, or is just ending."""
        self.slot.is_plain = 0
        self._plan = None  # the next one is described anew

    def progress(self, fraction: float, note: str) -> None:
        """Show how far the running job is; if the job is tracked, the steward writes that to the store."""
        self._has_progress = True
        self.slot.note = note
        self.slot.progress = fraction or SAYS_0

    def place(self, job_id: str, name: str, place: bytes) -> None:
        """Show how far the cursor of this job, which runs, is; or with an empty name that it has steps."""
        self._has_progress = True
        self.slot.place.show(job_id, name, place)

    def _clear_progress(self) -> None:
        self._has_progress = False
        self.slot.progress, self.slot.note = 0.0, ""
        self.slot.place.forget()

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


class HeldBatch:
    """The current batch of jobs, which the board calls the slot's hand, from one answered reserve to the next.

    It has the jobs done but not yet deleted, the one turned to last, and those waiting to be started. Used by the
    slot's worker alone; every process may read the slot. Each change is written on the board first.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._held = slot.hand
        #: jobs of which only the receipt is left to delete
        self.done: list[Lease] = []
        #: jobs not started, each with its number on the board
        self.waiting: deque[tuple[int, Lease]] = deque()
        #: whether some were parked, together with all behind them, since the last reserve
        self.has_parked = False
        self._since = 0.0
        self._lease_end = 0.0
        self._shows_lease = False
        #: the number on the board of the job turned to last
        self.number = 0
        #: how many have succeeded; reading it back from the board would take as long as writing it
        self._succeeded = 0

    def requesting(self) -> float:
        """A reserve is about to be sent: jobs may be ours before we know. Returns the time (monotonic seconds)."""
        now = time.monotonic()
        self._slot.reserve_sent_at = now
        return now

    def replied(self) -> None:
        """The reply was read, so it is known what the last reserve took."""
        self._slot.reserve_sent_at = 0.0

    def deleted(self) -> None:
        """The done jobs are deleted, and none waits: nothing is held, but a reserve may be under way."""
        self.done = []
        self._held.drop()

    @property
    def awaits_reply(self) -> bool:
        """Whether a reserve was sent but its reply was not read, so it is unknown what it took."""
        return bool(self._slot.reserve_sent_at)

    def hold(self, leases: Sequence[Lease], lease_end: float, since: float) -> None:
        """A reserve was answered: begin the next batch, with the jobs done so far and these.

        ``lease_end``, and ``since`` when they wait, are monotonic seconds. If the steward wants something back, the old
        batch ends here even if nothing new has come. Raises ``StoreError`` if there is no room; the old batch and the
        mark of the open reserve then stay.
        """
        slot = self._slot
        self.ended()
        if leases or self.done or self.is_wanted_back:
            try:
                slot.hold(leases, self.done)
            except OSError as error:  # large receipts are files beside the board
                raise StoreError(f"no room beside the board: {error.strerror}: these jobs wait") from error
        else:
            slot.hand.drop()
        self._held = slot.hand
        if leases:
            self._lease_end = slot.lease_end = lease_end
        slot.reserve_sent_at = 0.0
        self.waiting.extend(enumerate(leases, start=len(self.done)))
        self._since = since

    def next_job(self) -> Lease | None:
        """Turn to the next waiting job; ``number`` is then its own.

        ``None`` if the steward wants back what was not started, or if the job has waited for too long.
        """
        number, lease = self.waiting[0]
        # Write first, then check: the steward writes what it wants, waits, and then checks (steward/leases.py).
        self._slot.current_index = self.number = number
        self._show_lease()
        if self.is_wanted_back or time.monotonic() - self._since >= _FRESH:
            return None
        self.waiting.popleft()
        return lease

    @property
    def turn(self) -> int:
        """The batch's number on the board."""
        return self._slot.hand_number

    @property
    def is_wanted_back(self) -> bool:
        """Whether the steward has taken, or is about to take, the held jobs not yet started."""
        return self.was_wanted_back(self._slot.hand_number)

    def was_wanted_back(self, turn: int) -> bool:
        """The same for an earlier batch, and for what was requested meanwhile."""
        return self._slot.wanted_back == turn

    def reads(self, number: int) -> None:
        """The payload of this job is about to be read: if the worker dies now, that may be the cause."""
        self._held.mark(number, _READING)

    def has_read(self, number: int) -> None:
        """It has been read. The store is asked before the job runs; a death there is not the payload's fault."""
        self._held.mark(number, Stage.RESERVED)

    def started(self, number: int) -> None:
        """This job is about to run."""
        if not self._shows_lease:  # the store was asked first, or something was logged
            self._show_lease()
        self._held.mark(number, _RUNNING)

    def succeeded(self, number: int) -> None:
        """This job must not run again: only its settlement is left, by us or, if we die, by the steward."""
        self._held.mark(number, _DONE)
        self._succeeded += 1
        self._slot.done = self._succeeded

    def ended(self) -> None:
        """No job runs, so the worker need not be killed when the lease ends or is found settled."""
        self._shows_lease = False
        self._slot.lease_end = 0.0

    def _show_lease(self) -> None:
        """From now on the steward renews the lease, and the master kills the worker when it ends all the same."""
        self._shows_lease = True
        self._slot.lease_end = self._lease_end

    def settled(self, number: int) -> None:
        """Another worker may hold this job now."""
        self._held.mark(number, Stage.SETTLED)

    def parked(self, numbers: Collection[int]) -> None:
        """Of those waiting, these are to start later, and in any worker."""
        self.waiting = deque(one for one in self.waiting if one[0] not in numbers)
        for number in numbers:
            self.settled(number)

    def breaks(self) -> None:
        """The worker ends itself because a job has closed its files. Only a worker with lanes has to record this."""

    def gave_back(self) -> None:
        """Other workers may hold the waiting jobs now."""
        self.ended()
        while self.waiting:
            self.settled(self.waiting.pop()[0])

    def drop(self) -> None:
        """Hold nothing any more: done jobs have been deleted."""
        self.done = []
        self.ended()
        self._held.drop()
