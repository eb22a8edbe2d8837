"""The fields of the board: about the pool as a whole, and about each process. Each field has one writer.

Deadlines are monotonic seconds; ``since`` is wall-clock time, for people. Any value may be nonsense, since a job can
overwrite it: the master also keeps its fields in its own memory, and rewrites those that have changed. What it knows is
packed, so that one call moves it to or from the board.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from struct import Struct
from typing import NamedTuple

from queuepool.board.held_jobs import BEGUN, HeldJob, HeldJobs, Running, Stage, fraction_of
from queuepool.board.lanes import HeldLane, Lanes
from queuepool.board.paused_queues import ROOM
from queuepool.board.record import Record, Seconds, Text, Whole, as_count
from queuepool.board.states import HELPERS, Killed, Role, State
from queuepool.board.step_place import StepPlace
from queuepool.payload.lease import Lease

#: tolerance in seconds: how much later a lease may end than one taken now
_TOLERANCE = 1.0
_STATES = frozenset(State) - {State.FAILING}  # which only a pool can be


class Header(Record):
    """The pool as a whole."""

    magic = Whole()
    capacity = Whole()
    # Written by the master.
    master_pid = Whole()
    master_start_time = Whole()
    state = Whole()
    target = Whole()
    # Totals of ended incarnations; the slots hold the others.
    done = Whole()
    failed = Whole()
    released = Whole()
    # Slots from this index on have never been used; 0 = unknown.
    used = Whole()
    #: the version of the code to run: each restart raises it
    generation = Whole()
    since = Seconds()
    #: the store in which all receipts on the board are valid; see ``connections.identity_of``
    store = Text(32)
    steward_killed = Whole()  # whether the last steward was killed from outside, not by what it did
    # Written by the steward.
    restarts = Whole()
    restart_known = Whole()
    restart_stamp = Text(64)
    store_lost = Seconds()
    failed_store_lost = Seconds()
    control_store_lost = Seconds()
    #: records that wait for the failed store
    unrecorded = Whole()
    down = Whole()
    #: see ``paused_queues.py``
    paused = Text(ROOM)
    deferred_hooks = Whole()
    #: the last generation of which a process failed to boot, and why
    boot_failed = Whole()
    boot_problem = Text(300)
    # Raised after every change of `down` and `paused`: a worker reads only two fields per round.
    control_changes = Whole()
    # What the steward is doing, and what crashed those before it; see board/blame.py.
    doing = Text(100)
    died_of = Text(440)
    # Written by `queuepool scale`, taken by the master: an order as in ``requests.word_of``.
    scale = Whole()
    # Written by the first worker of a generation, or its template: the generation whose jobs the log lists.
    announced = Whole()
    # Written by the master. The probe reads them by their offsets, so new fields come after them.
    #: monotonic: the end of the master's last pass; 0.0 = its version has no beat
    beat = Seconds()
    #: wall-clock time at which a worker or a template had first imported the modules; 0.0 = none has
    ready = Seconds()
    # Written by the first worker of a generation: a digest of the warnings of jobs that it has logged.
    warned = Whole()
    # Written by the steward: the living workers of killed masters, for which a stop of this pool waits.
    orphans = Whole()
    # By the master, monotonic: when the pool's stop kills them; infinity = it waits for them, 0.0 = no stop of the pool
    end_orphans_at = Seconds()
    # What the steward's other threads are doing, for separate stores and for alerts; as `doing`.
    doing_aside = Text(40)
    doing_alerts = Text(40)
    # Written by the steward.
    #: since when the store has refused new jobs, in Unix seconds; 0.0 = it has room
    store_full = Seconds()
    # Written by the master.
    #: 1 = a signal has asked it to stop. A pool that gives up drains as well, without this
    stop_asked = Whole()
    #: whether the last signal paused it, whatever its state: `State.PAUSED` or `State.RUNNING`; 0 = no signal yet
    signalled = Whole()
    # Written by the steward of a pool that scales.
    #: how many workers its jobs need, 0 = unknown; when that was found (monotonic), and why
    wish = Whole()
    wish_at = Seconds()
    wish_why = Text(62)
    # Written by the master. Without bounds, in a pool that does not scale, both are 0.
    fewest = Whole()
    most = Whole()
    #: whether an operator has ordered the number of workers, until when (monotonic; 0.0 = until another order)
    pinned = Whole()
    pinned_until = Seconds()
    #: why it does not follow the wish: a value of `Hold`
    held = Whole()
    #: by the same steward before `wish_at`: how many workers its jobs need without bounds, now and of late; 0 = unknown
    needed = Whole()
    lately = Whole()
    flows_at = Seconds()  # monotonic, by all who run or settle a member of a flow: when the last one did
    limits_at = Seconds()  # monotonic, by workers: when the last job with a limit wanted to start
    doing_flows = Text(40)  # by the steward's thread that measures flows; as `doing`
    store_epoch = Whole()  # by the steward, where sentinels name the primary: raised whenever it has moved
    store_config_epoch = Whole()  # likewise: how many failovers those know of who say where it is
    store_at = Text(270)  # likewise: where it is, as `HOST PORT`

    @property
    def facts(self) -> HeaderFacts:
        """The first fields, unchecked, in one read; assigning writes all in one write."""
        return HeaderFacts.unpacked(self.memory[self.base : self.base + POOL_FACTS_SIZE])

    @facts.setter
    def facts(self, facts: HeaderFacts) -> None:
        self.memory[self.base : self.base + POOL_FACTS_SIZE] = facts.packed()

    def note_control_change(self) -> None:
        """By the steward: the workers have something new to read."""
        self.control_changes = as_count(self.control_changes) + 1

    def note_deferred_hook(self) -> None:
        """By the steward: one more job has failed with its worker."""
        self.deferred_hooks = as_count(self.deferred_hooks) + 1

    def note_failed_boot(self, generation: int, problem: str) -> None:
        """By the steward: a process of this generation failed to boot."""
        self.boot_problem = problem
        self.boot_failed = generation

    @property
    def totals(self) -> Totals:
        """The totals of ended incarnations."""
        return Totals(as_count(self.done), as_count(self.failed), as_count(self.released))


class Slot(Record):
    """One process, alive, or dead and not yet settled."""

    # Written by the master.
    role = Whole()
    number = Whole()
    generation = Whole()
    incarnation = Whole()
    pid = Whole()
    start_time = Whole()
    dead = Whole()
    status = Whole()
    killed = Whole()
    # Written by the process.
    state = Whole()
    exited_cleanly = Whole()
    tag = Whole()
    #: monotonic; 0.0 = no reserve without a reply
    reserve_sent_at = Seconds()
    #: raised with each new hand; see ``hand``
    hand_number = Whole()
    #: the number in the hand of the job that the worker has turned to last, running or not
    current_index = Whole()
    deadline = Seconds()  # monotonic, of the job or of a round without one; 0.0 = no limit
    lease_end = Seconds()  # monotonic, of the job at hand, unless it was renewed (``lease_deadline``); 0.0 = none runs
    #: for readers outside the pool: this worker's attempts. The meters are in the pool's own memory, and count by slot
    done = Whole()
    failed = Whole()
    released = Whole()
    rss = Whole()
    since = Seconds()
    attempt = Whole()
    #: seconds for which the running job's state is kept after its end; 0.0 = it is not tracked
    track = Seconds()
    #: 1 = the running job's handler is a plain function that nothing has shown to end by itself if it is cancelled
    is_plain = Whole()
    #: how far the running job is; ``fraction_of`` in ``held_jobs.py`` reads it
    progress = Seconds()
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    policy = Text(2000)
    #: the running job's note on its progress; during the import of the modules, what to report if that takes too long
    note = Text(200)
    # Written by the steward.
    #: the number of the hand whose leases end at ``renewed_end``
    renewed_hand = Whole()
    renewed_end = Seconds()
    #: the number of the hand whose waiting jobs are to be given back
    wanted_back = Whole()
    settled_incarnation = Whole()
    # Written by whoever cancels a running job, one at a time; see ``cancelling.py``.
    #: which attempt is meant: the incarnation, the hand, and the number of the job in it
    cancel_life = Whole()
    cancel_hand = Whole()
    cancel_index = Whole()
    #: 1 = the job goes back to its queue
    cancel_requeue = Whole()
    #: seconds for a job that can end by itself
    cancel_grace = Seconds()
    #: monotonic: when it was ordered; 0.0 = no order. Written last
    cancel_at = Seconds()
    cancel_by = Text(120)
    # Written by whoever asks where the coroutines of a job are; see ``live_stack.py``.
    #: any number but the last one; and the lane whose job is meant, plus one; 0 = the only job
    stack_wanted = Whole()
    stack_lane = Whole()
    # Written by the process, the second one by the steward once the process is dead: the ``cancel_at`` of the order
    #: that the running job obeys by itself; negative: that it cannot obey
    cancel_obeyed = Seconds()
    #: that was carried out, and is settled
    cancel_done = Seconds()

    hands: tuple[HeldJobs, HeldJobs]
    #: how far the cursor of the running job is
    place: StepPlace
    #: of a worker that runs jobs side by side; its hands stay empty
    lanes: Lanes | None
    index: int

    @property
    def facts(self) -> SlotFacts:
        """The first fields, unchecked, in one read; assigning writes all in one write."""
        return SlotFacts.unpacked(self.memory[self.base : self.base + FACTS_SIZE])

    @facts.setter
    def facts(self, facts: SlotFacts) -> None:
        self.memory[self.base : self.base + FACTS_SIZE] = facts.packed()

    @property
    def totals(self) -> Totals:
        """The totals of this incarnation."""
        found = self.numbers()
        return Totals(*(as_count(found[name]) for name in Totals._fields))

    def running(self) -> list[Running]:
        """The jobs that its process runs; none if it is dead or not busy."""
        if self.lanes:
            return [_in_lane(one) for one in self.lanes.held() if one.stage == Stage.RUNNING] if not self.dead else []
        seen = self.copy()
        return _shown_by(seen) if seen.state == State.BUSY and not seen.dead else []

    @property
    def may_be_tracked(self) -> bool:
        """Whether the job that its process began last is tracked; for jobs side by side, whether one of the last is."""
        return bool(self.track or (self.lanes and self.lanes.are_tracked))

    def lanes_running(self) -> list[tuple[Running, int]]:
        """As ``running``, for jobs side by side: each with the turn of its lane."""
        held = self.lanes.held() if self.lanes and not self.dead else []
        return [(_in_lane(one), one.turn) for one in held if one.stage == Stage.RUNNING]

    def shown(self) -> list[Running]:
        """The attempts that its process began last, running or not."""
        if self.lanes:
            return [_in_lane(one) for one in self.lanes.held() if one.stage in BEGUN]
        return _shown_by(self.copy())

    def is_plausible(self, now: float, retry_after: float) -> bool:
        """Whether its process can have written these values; ``now`` is in monotonic seconds."""
        found = self.numbers()
        times = [found[name] for name in ("reserve_sent_at", "deadline", "lease_end", "since")]
        counts = [found[name] for name in ("tag", "hand_number", "current_index", *Totals._fields, "rss")]
        is_sound = found["state"] in _STATES and found["exited_cleanly"] in (0, 1)
        is_in_time = max(found["reserve_sent_at"], found["lease_end"] - retry_after) <= now + _TOLERANCE
        are_times = all(isfinite(time) and time >= 0.0 for time in times)
        return is_sound and is_in_time and are_times and counts == list(map(as_count, counts))

    def held(self) -> list[HeldJob]:
        """All jobs that its process holds. Raises as ``HeldJobs.held``."""
        if self.lanes:
            return [HeldJob(one.lane, one.lease, one.stage) for one in self.lanes.held()]
        return self.hand.held()

    def mark(self, number: int, stage: Stage) -> None:
        """Set the stage of the held job with this number."""
        if self.lanes:
            self.lanes.mark(number, stage)
        else:
            self.hand.mark(number, stage)

    @property
    def hand(self) -> HeldJobs:
        """The held jobs: the number of the present hand tells which of the two hands is valid."""
        return self.hands[self.hand_number % 2]

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """By the worker: begin the next hand with these jobs; a reader sees one hand or the other."""
        self.hands[(self.hand_number + 1) % 2].hold(leases, done)
        self.hand_number += 1

    def begin(self, role: Role, number: int, generation: int) -> None:
        """By the master, before the fork: begin a new incarnation in a free slot, with its counters at 0."""
        incarnation, cancel_done = as_count(self.incarnation) + 1, self.cancel_done
        self.clear()
        self.cancel_done = cancel_done  # whoever cancelled the last worker's job may not have looked yet
        for hand in self.hands:
            hand.drop()
        self.place.forget()
        if self.lanes:
            self.lanes.clear()
        self.incarnation = incarnation
        self.number, self.generation = number, generation
        self.wanted_back = -1
        self.role = role

    @property
    def lease_deadline(self) -> float:
        """Monotonic end of the running job's lease, as last renewed; 0.0 = no job runs, or it ended during the read.

        With jobs side by side, the earliest end.
        """
        if not self.lease_end:
            return self.lanes.lease_deadline if self.lanes else 0.0
        # The worker writes while we read: the values count only if all are from the same hand.
        hand_number, end = self.hand_number, self.lease_end
        if self.renewed_hand == hand_number:
            end = self.renewed_end or end
        return end if self.hand_number == hand_number and self.lease_end else 0.0

    @property
    def has_left(self) -> bool:
        """Whether its process says that it has left by itself: what a job has written over its slot says nothing."""
        return self.exited_cleanly == 1 and self.killed != Killed.OVERWRITTEN

    @property
    def holds_nothing(self) -> bool:
        """Whether the death of its process needs no settlement and no event.

        True for a helper, a template that the master ended, and a worker without held jobs that exited cleanly, or that
        a stop ended while it imported its modules.
        """
        if self.role == Role.TEMPLATE and self.killed == Killed.STOP:
            return True
        is_over = self.has_left or (self.killed == Killed.STOP and self.state == State.STARTING)
        is_unused = is_over and not self.reserve_sent_at and self.hand.is_empty
        return self.role in HELPERS or bool(is_unused and (self.lanes is None or self.lanes.is_empty))


def _in_lane(one: HeldLane) -> Running:
    about = one.job, one.job_id, one.lease.queue, one.attempt, one.since, one.deadline, one.track
    return Running(one.lane, *about, one.progress, one.note, one.policy)


def _shown_by(slot: Slot) -> list[Running]:
    """The only one, in a worker that runs one job at a time."""
    about = slot.job, slot.job_id, slot.queue, slot.attempt, slot.since, slot.deadline, slot.track
    return [Running(slot.current_index, *about, fraction_of(slot.progress), slot.note, slot.policy)]


class SlotFacts(NamedTuple):
    """Facts about a process: the first fields of its slot."""

    role: int
    number: int
    generation: int
    incarnation: int
    pid: int
    start_time: int
    dead: int
    status: int
    killed: int

    @classmethod
    def unpacked(cls, raw: bytes) -> SlotFacts:
        """The facts from their bytes on the board."""
        return cls(*_FACTS.unpack(raw))

    def packed(self) -> bytes:
        """The facts as bytes for the board."""
        return _FACTS.pack(*self)


class HeaderFacts(NamedTuple):
    """Facts about the pool: the first fields of the header."""

    magic: int
    capacity: int
    master_pid: int
    master_start_time: int
    state: int = 0
    target: int = 0
    done: int = 0
    failed: int = 0
    released: int = 0
    used: int = 0
    generation: int = 0
    since: float = 0.0

    @classmethod
    def unpacked(cls, raw: bytes) -> HeaderFacts:
        """The facts from their bytes on the board."""
        return cls(*_POOL_FACTS.unpack(raw))

    def packed(self) -> bytes:
        """The facts as bytes for the board."""
        return _POOL_FACTS.pack(*self)


class Totals(NamedTuple):
    """Jobs done, failed and released."""

    done: int = 0
    failed: int = 0
    released: int = 0

    def plus(self, other: Totals) -> Totals:
        """The sum of both."""
        return Totals(*map(sum, zip(self, other, strict=True)))


_FACTS, _POOL_FACTS = Struct("=9q"), Struct("=11qd")
FACTS_SIZE, POOL_FACTS_SIZE = _FACTS.size, _POOL_FACTS.size
