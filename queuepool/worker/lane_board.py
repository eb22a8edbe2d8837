"""What a worker that runs jobs side by side shows of them: its lanes on the board.

The main thread takes and frees lanes; the loop's thread marks the beginning and the end of what runs in them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from queuepool.board.fields import Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_layout import NATIVE, THREAD
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.board.lanes import OwnEnd
from queuepool.board.orders import CancelOrder, LaneOrder
from queuepool.board.states import State
from queuepool.errors import StoreError
from queuepool.payload.lease import Lease
from queuepool.unix.originals import get_native_id
from queuepool.worker.deadlines import Deadline
from queuepool.worker.job_attempt import JobAttempt
from queuepool.worker.lane_tasks import lane_of
from queuepool.worker.plan import Plan
from queuepool.worker.slot_writer import SlotWriter

#: seconds between two checks of what jobs may have changed and of memory, and between two titles
_PERIOD = 1.0
#: seconds to an alarm that is already due
_AT_ONCE = 0.001
#: most kinds of jobs whose texts are kept
_MOST = 256


class LaneBatch:
    """The jobs that the worker holds, each in a lane. ``most``: jobs that may run at once.

    The slot has more lanes: those of jobs that are done hold them until they are deleted.
    """

    def __init__(self, slot: Slot, most: int) -> None:
        assert slot.lanes
        self._slot = slot
        self._most = most
        self._lanes = slot.lanes
        self._writer = LaneWriter(slot.lanes)
        #: for the steps of their tasks
        self.lanes = slot.lanes
        self._free = deque(range(slot.lanes.count))
        #: by lane
        self._held: dict[int, Lease] = {}
        #: jobs of which only the receipt is left to delete, each with its lane
        self.done: list[tuple[int, Lease]] = []
        #: suspects that wait until no other suspect runs; they take no place from other jobs
        self.waiting_suspects: deque[JobAttempt] = deque()
        #: attempts that are over, and done jobs as in ``done``, whose nodes are away: they take no place from others
        self.put_off: deque[JobAttempt] = deque()
        self.undone: list[tuple[int, Lease]] = []
        self._succeeded = 0
        #: the kind of the last job that has begun
        self.began_last: LaneJobs | None = None
        #: the texts of the lanes' pages, by kind of job
        self._kinds: dict[str, tuple[Plan, LaneJobs]] = {}

    @property
    def known(self) -> list[Lease]:
        """All leases that it holds."""
        return list(self._held.values())

    @property
    def running(self) -> int:
        """How many jobs run, or are about to."""
        ended = len(self.done) + len(self.undone) + len(self.put_off)
        return len(self._held) - ended - len(self.waiting_suspects)

    @property
    def room(self) -> int:
        """How many more jobs may be taken."""
        return min(self._most - self.running, len(self._free))

    def next_suspect(self) -> JobAttempt | None:
        """The next suspect, whose turn it is now; ``None`` = none waits, or no more jobs may run."""
        if not self.waiting_suspects or self.running >= self._most:
            return None
        suspect = self.waiting_suspects.popleft()
        if suspect.now:  # the clock was read before the wait, during which the job may have expired
            suspect.now += time.monotonic() - suspect.suspect_since
        return suspect

    @property
    def awaits_reply(self) -> bool:
        """As in ``HeldBatch``."""
        return bool(self._slot.reserve_sent_at)

    def requesting(self) -> float:
        """As in ``HeldBatch``."""
        now = time.monotonic()
        self._slot.reserve_sent_at = now
        return now

    def replied(self, leases: Sequence[Lease], lease_end: float) -> list[tuple[int, Lease]]:
        """A reserve has brought these jobs, and deleted those that were done: hold each in a lane.

        Raises ``StoreError`` if there is no room: then none of them is held, and the mark of the reserve stays.
        """
        taken: list[tuple[int, Lease]] = []
        try:
            for lease in leases:
                self._writer.take(self._free[0], lease, lease_end)
                taken.append((self._free.popleft(), lease))
        except OSError as error:  # large receipts are files beside the board
            for lane, _ in taken:
                self._writer.free(lane)
                self._free.append(lane)
            raise StoreError(f"no room beside the board: {error.strerror}: these jobs wait") from error
        self._held.update(taken)
        # Only now: at each moment the board shows each job that may be ours.
        self.deleted()
        self._slot.reserve_sent_at = 0.0
        return taken

    def put_off_deletion(self, queues: Collection[str]) -> None:
        """The jobs of these queues that are done cannot be deleted yet."""
        self.undone += [one for one in self.done if one[1].queue in queues]
        self.done = [one for one in self.done if one[1].queue not in queues]

    def deleted(self) -> None:
        """The jobs that were done are deleted."""
        done, self.done = self.done, []
        for lane, _ in done:
            self.free(lane)

    def free(self, lane: int) -> None:
        """Nothing of this lane's job is left to do."""
        self._writer.free(lane)
        del self._held[lane]
        self._free.append(lane)

    def reads(self, lane: int) -> None:
        """As in ``HeldBatch``."""
        self._lanes.mark(lane, Stage.READING)

    def has_read(self, lane: int) -> None:
        """As in ``HeldBatch``."""
        self._lanes.mark(lane, Stage.RESERVED)

    def begins(self, attempt: JobAttempt, deadline: Deadline) -> float:
        """On the loop: this job is about to run. Returns the time in Unix seconds."""
        now, payload = time.time(), attempt.payload
        at = deadline.at if deadline.timeout else 0.0
        self.began_last = kind = self._kind(attempt)
        self._writer.begins(attempt.number, kind, job_id=payload.id, attempt=payload.attempts, since=now, deadline=at)
        return now

    def succeeded(self, lane: int) -> None:
        """on the loop: as in ``HeldBatch``."""
        self._lanes.mark(lane, Stage.DONE)
        self._succeeded += 1
        self._slot.done = self._succeeded

    def key(self, lane: int) -> int:
        """The key of this job's attempt, for the meters."""
        return self._writer.key(lane)

    def counted(self, lane: int) -> None:
        """The meters have counted this attempt."""
        self._writer.counted(lane)

    def settles(self, lane: int | None) -> None:
        """This lane's job is being settled; ``None``: no more."""
        self._writer.settles(lane)

    def fails(self) -> None:
        """An exception ends the main thread, and so the worker."""
        self._writer.ends(OwnEnd.FAILED)

    def breaks(self) -> None:
        """As in ``HeldBatch``."""
        self._writer.ends(OwnEnd.BROKEN)

    def mark_suspect(self, lane: int) -> None:
        """This job may have killed other workers."""
        self._writer.mark_suspect(lane)

    def told(self, lane: int) -> None:
        """On the loop: this job is told to end."""
        self._writer.told(lane)

    def free_for(self, seconds: float) -> None:
        """On the loop: it was free for so long while a job was told to end."""
        self._writer.free_for(seconds)

    def may_end(self, lane: int) -> None:
        """On the loop, or in a thread of this job: it can end by itself."""
        self._writer.may_end(lane)

    def threads(self, lane: int, more: int) -> None:
        """In one thread at a time: so many more threads are at work for this job."""
        self._writer.threads(lane, more)

    def runs_in(self, thread: int) -> None:
        """In the loop's thread: its identity."""
        self.lanes.wholes[THREAD], self.lanes.wholes[NATIVE] = thread, get_native_id()

    def over(self, lane: int) -> None:
        """On the loop: nothing of this job runs any more."""
        self._writer.ended(lane)

    def ended(self) -> None:
        """Called while a worker is alive; what runs here has its own lane."""

    def settled(self, lane: int) -> None:
        """As in ``HeldBatch``. The meters have counted its attempt by now: they do not ask about a settled lane."""
        self._lanes.mark(lane, Stage.SETTLED)

    def progress(self, lane: int, fraction: float, note: str) -> None:
        """On the loop: show how far this job is."""
        self._writer.progress(lane, fraction, note)

    def place(self, lane: int, job_id: str, name: str, place: bytes) -> None:
        """On the loop, or in a thread of this job: show how far its cursor is."""
        self._writer.place(lane, job_id, name, place)

    def lost(self) -> list[int]:
        """The lanes whose jobs another worker may have."""
        return [lane for lane, order in self._lanes.orders() if order is LaneOrder.LOST]

    def cancelled(self) -> list[CancelOrder]:
        """The orders to end jobs that an operator has cancelled."""
        lanes = [lane for lane, order in self._lanes.orders() if order is not LaneOrder.LOST]
        return [order for lane in lanes if (order := self._lanes.cancelled(lane))]

    def _kind(self, attempt: JobAttempt) -> LaneJobs:
        plan = attempt.plan
        known = self._kinds.get(attempt.payload.name)
        if known is None or known[0] is not plan:
            shown = attempt.payload.name if plan.handler else "unknown"  # an unregistered name is never shown
            if len(self._kinds) >= _MOST:
                self._kinds.clear()
            known = self._kinds[attempt.payload.name] = plan, LaneJobs(plan.text, shown, plan.track, plan.is_plain)
        return known[1]


class LaneSlotWriter(SlotWriter):
    """As for a worker that runs one job at a time; the deadlines of jobs are in their lanes."""

    batch: LaneBatch  # type: ignore[assignment]

    def __init__(self, *args: Any, most: int, **facts: Any) -> None:
        """``most``: jobs that may run at once; the rest as in ``SlotWriter``."""
        super().__init__(*args, **facts)
        self.batch = LaneBatch(self.slot, most)
        self._most = most
        self._shown_at = 0.0
        self._ends = False

    def may_end(self) -> None:
        if (lane := lane_of()) is not None:
            self.batch.may_end(lane)

    def place(self, job_id: str, name: str, place: bytes) -> None:
        """As in ``SlotWriter``, for the job whose code runs here."""
        if (lane := lane_of()) is not None:
            self.batch.place(lane, job_id, name, place)

    def boots(self, problem: str, within: float) -> None:
        """A step of the boot begins: the alarm ends it after so many seconds (0.0 = never), for this reason."""
        self.slot.note = problem
        self.slot.deadline = time.monotonic() + within if within else 0.0
        self._alarm.arm(within)

    def has_booted(self) -> None:
        """The boot is over."""
        self._alarm.disarm()
        self.slot.note = ""
        self.alive()

    def alive(self) -> None:
        """If the next call does not come in time, the master kills us."""
        self.slot.deadline = time.monotonic() + self._stall_timeout

    def arm_at(self, at: float) -> None:
        """On the loop: set the kernel's alarm (monotonic), 0.0 = none."""
        self._alarm.arm(max(at - time.monotonic(), _AT_ONCE) if at else 0.0)
        if self._ends:  # read only now: the call above may have replaced that alarm
            self._alarm.arm(_AT_ONCE)

    def end_at_once(self) -> None:
        """In the main thread: have the alarm end the process, even if the loop sets another one meanwhile."""
        self._ends = True
        self._alarm.arm(_AT_ONCE)

    def show(self, state: State) -> None:
        """Nothing runs, as far as the caller knows; once ``show_jobs`` has been called, the state comes from there."""
        if self.slot.state == State.STARTING:  # if the first job kills the worker, the boot has not failed
            self.show_jobs(0, state)

    def show_jobs(self, running: int, state: State) -> None:
        """Show how many jobs run; ``state`` if none does."""
        now = time.monotonic()
        shown = State.BUSY if running and state == State.IDLE else state
        if self.slot.state != shown:
            self.slot.state = shown
        elif now - self._shown_at < _PERIOD:
            return
        self._shown_at = now
        self._title(f"{shown.name.lower()} jobs={running}/{self._most} done={self.slot.done}")

    @property
    def ran_last(self) -> str:
        """As in ``SlotWriter``."""
        return self.batch.began_last.job if self.batch.began_last else ""

    def rss(self) -> float:
        """Resident MB, at most a second old."""
        if time.monotonic() - self._rss_at >= _PERIOD:
            self._has_run = True  # a job, what one has left behind, or a lifespan
            self.tidy()
        return self._rss
