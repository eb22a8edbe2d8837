"""What a worker writes to its lanes."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.board.held_jobs import SAYS_0, Stage
from queuepool.board.lane_layout import (
    COLUMNS,
    DEADLINE,
    EMPTY,
    FREE,
    HEAD,
    INLINE,
    LEASE,
    OWN_END,
    PLAIN,
    PROGRESS,
    SETTLING,
    SINCE,
    TOLD,
    TURN,
    LanePage,
    key_of,
)
from queuepool.board.lanes import Lanes, OwnEnd
from queuepool.board.record import as_count
from queuepool.payload.lease import Lease

#: plain numbers take less time to write than enum members
_RESERVED, _RUNNING = int(Stage.RESERVED), int(Stage.RUNNING)


class LaneJobs(NamedTuple):
    """What all jobs of one name and one plan have in common; a lane writes it only if its last job was of another.

    ``policy`` is the plan's text, ``track`` in seconds; ``is_plain`` as in a slot.
    """

    policy: str
    job: str
    track: float = 0.0
    is_plain: bool = False


class LaneWriter:
    """Used by the slot's worker alone, with the board mapped into its memory."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._memory = lanes.memory
        self._wholes, self._reals = lanes.wholes, lanes.reals
        self._pages = [LanePage(lanes.memory, lanes.page_at(lane)) for lane in range(lanes.count)]
        self._places = [lanes.place(lane) for lane in range(lanes.count)]
        first = [HEAD + column * lanes.count for column in range(COLUMNS)]
        self._turn, self._stage, self._lease_end, self._deadline = first[TURN : DEADLINE + 1]
        self._since, self._attempt, self._counted, self._track, self._progress = first[SINCE : PROGRESS + 1]
        self._told, self._threads, self._suspect, self._plain = first[TOLD : PLAIN + 1]
        # What the pages say: most jobs are like the one before.
        self._jobs: list[LaneJobs | None] = [None] * lanes.count
        self._queues = [""] * lanes.count
        self._has_progress = [True] * lanes.count  # perhaps left by the slot's last worker

    def take(self, lane: int, lease: Lease, lease_end: float) -> None:
        """Hold this job in a free lane until ``lease_end`` (monotonic). If ``OSError`` is raised, it stays free."""
        wholes = self._wholes
        wholes[self._turn + lane] = as_count(wholes[self._turn + lane]) + 1
        if lease.queue != self._queues[lane]:
            self._pages[lane].queue = self._queues[lane] = lease.queue
        self._write(lane, lease)
        wholes[self._counted + lane] = wholes[self._suspect + lane] = wholes[self._threads + lane] = 0
        self._reals[self._told + lane] = 0.0
        self._reals[self._lease_end + lane] = lease_end
        wholes[self._stage + lane] = _RESERVED

    def _write(self, lane: int, lease: Lease) -> None:
        size, inline = len(lease.receipt), lease.receipt
        if size > INLINE:
            self._lanes.file(lane).write_bytes(lease.receipt)
            inline = b""
        proof = (1, *lease.row) if lease.row else (0, 0, 0)
        raw = LEASE.pack(size, lease.tag, *proof) + inline
        first = self._pages[lane].base + LanePage.size
        self._memory[first : first + len(raw)] = raw

    def begins(self, lane: int, jobs: LaneJobs, *, job_id: str, attempt: int, since: float, deadline: float) -> None:
        """The held job is about to run; ``since`` in Unix seconds, ``deadline`` monotonic, 0.0 = none."""
        page, wholes, reals = self._pages[lane], self._wholes, self._reals
        if jobs is not self._jobs[lane]:
            self._jobs[lane] = jobs
            page.policy, page.job = jobs.policy, jobs.job
            reals[self._track + lane], wholes[self._plain + lane] = jobs.track, jobs.is_plain
        if self._has_progress[lane]:
            self._has_progress[lane] = False
            reals[self._progress + lane], page.note = 0.0, ""
            self._places[lane].forget()
        page.job_id = job_id
        wholes[self._attempt + lane] = attempt
        reals[self._since + lane], reals[self._deadline + lane] = since, deadline
        wholes[self._stage + lane] = _RUNNING

    def mark(self, lane: int, stage: int) -> None:
        """Set the stage of the held job."""
        self._wholes[self._stage + lane] = stage

    def key(self, lane: int) -> int:
        """The ``key_of`` the job that it holds."""
        return key_of(lane, self._wholes[self._turn + lane])

    def told(self, lane: int) -> None:
        """The loop is free, and tells the job to end."""
        self._reals[self._told + lane] = self._reals[FREE] = max(self._reals[FREE], 1e-9)

    def free_for(self, seconds: float) -> None:
        """The loop was free for so long, while a job was told to end."""
        self._reals[FREE] += seconds

    def counted(self, lane: int) -> None:
        """The meters have counted the attempt."""
        self._wholes[self._counted + lane] = 1

    def settles(self, lane: int | None) -> None:
        """The main thread settles this lane's job now; ``None``: that is over."""
        self._wholes[SETTLING] = 0 if lane is None else lane + 1

    def ends(self, why: OwnEnd) -> None:
        """The worker ends itself; no step of a job's code is the cause."""
        self._wholes[OWN_END] = why

    def mark_suspect(self, lane: int) -> None:
        """The job may have killed another worker."""
        self._wholes[self._suspect + lane] = 1

    def may_end(self, lane: int) -> None:
        """The job can end by itself, or is just ending."""
        self._wholes[self._plain + lane] = 0
        self._jobs[lane] = None  # the next one is described anew

    def threads(self, lane: int, more: int) -> None:
        """So many more threads are at work for the job; negative: fewer."""
        self._wholes[self._threads + lane] += more

    def progress(self, lane: int, fraction: float, note: str) -> None:
        """Show how far the running job is, from 0 to 1."""
        self._has_progress[lane] = True
        self._pages[lane].note = note
        self._reals[self._progress + lane] = fraction or SAYS_0

    def place(self, lane: int, job_id: str, name: str, place: bytes) -> None:
        """Show how far the cursor of the running job is, as in ``StepPlace.show``."""
        self._has_progress[lane] = True
        self._places[lane].show(job_id, name, place)

    def ended(self, lane: int) -> None:
        """Nothing of the job runs any more: the worker need not be killed when its deadline or its lease ends."""
        self._reals[self._deadline + lane] = self._reals[self._lease_end + lane] = 0.0

    def free(self, lane: int) -> None:
        """Another worker may hold the job now, or it is deleted."""
        self._wholes[self._stage + lane] = EMPTY
