"""The fields of the board about each process; those about the pool are in ``header.py``. Each field has one writer.

Deadlines are monotonic seconds; ``since`` is wall-clock time, for people. Any value may be nonsense, since a job can
overwrite it: the master also keeps its fields in its own memory, and rewrites those that have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from queuepool.board.facts import FACTS_SIZE, SlotFacts, Totals
from queuepool.board.held_jobs import BEGUN, HeldJob, HeldJobs, Stage
from queuepool.board.lanes import HeldLane, Lanes
from queuepool.board.record import Record, Seconds, Text, Whole, as_count
from queuepool.board.running import Running, fraction_of
from queuepool.board.states import HELPERS, Killed, Role, State
from queuepool.payload.lease import Lease

#: tolerance in seconds: how much later a lease may end than one taken now
_TOLERANCE = 1.0
_STATES = frozenset(State) - {State.FAILING}  # which only a pool can be


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
    #: of the running job in the hand
    current_index = Whole()
    deadline = Seconds()
    lease_end = Seconds()
    #: of this worker's attempts, for readers outside the pool: its meters are the pool's own memory, and of the slot
    done = Whole()
    failed = Whole()
    released = Whole()
    rss = Whole()
    since = Seconds()
    attempt = Whole()
    #: seconds for which the running job's state is kept after its end; 0.0 = it is not tracked
    track = Seconds()
    #: how far the running job is; see ``progress.py``
    progress = Seconds()
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    policy = Text(2000)
    #: of the running job about its progress; while the modules are imported, the problem if that takes too long
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
    #: any number but the last one; and of which lane, plus one; 0 = of the one job
    stack_wanted = Whole()
    stack_lane = Whole()
    # Written by the process, and the second one by the steward once that is dead: as ``cancel_at``, of the order …
    #: … that the running job obeys by itself; negative: that it cannot
    cancel_obeyed = Seconds()
    #: … that was carried out, and is settled
    cancel_done = Seconds()

    hands: tuple[HeldJobs, HeldJobs]
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
        """Whether a job that its process began last is tracked; of one that runs jobs side by side: one of the last."""
        return bool(self.track or (self.lanes and self.lanes.are_tracked))

    def lanes_running(self) -> list[tuple[Running, int]]:
        """As ``running``, of jobs side by side: each with the turn of its lane."""
        held = self.lanes.held() if self.lanes and not self.dead else []
        return [(_in_lane(one), one.turn) for one in held if one.stage == Stage.RUNNING]

    def shown(self) -> list[Running]:
        """The attempts that its process began last, running or not."""
        if self.lanes:
            return [_in_lane(one) for one in self.lanes.held() if one.stage in BEGUN]
        return _shown_by(self.copy())

    def is_plausible(self, now: float, retry_after: float) -> bool:
        """Whether its process can have written these values; in seconds, ``now`` is monotonic."""
        found = self.numbers()
        times = [found[name] for name in ("reserve_sent_at", "deadline", "lease_end", "since")]
        counts = [found[name] for name in ("tag", "hand_number", "current_index", *Totals._fields, "rss")]
        is_sound = found["state"] in _STATES and found["exited_cleanly"] in (0, 1)
        is_in_time = max(found["reserve_sent_at"], found["lease_end"] - retry_after) <= now + _TOLERANCE
        are_times = all(isfinite(time) and time >= 0.0 for time in times)
        return is_sound and is_in_time and are_times and counts == list(map(as_count, counts))

    def held(self) -> list[HeldJob]:
        """All jobs that its process holds. Raises as of ``HeldJobs.held``."""
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
        """The held jobs: of two hands, the number of the present one says which is valid."""
        return self.hands[self.hand_number % 2]

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """By the worker: begin the next hand with these jobs; a reader sees one hand or the other."""
        self.hands[(self.hand_number + 1) % 2].hold(leases, done)
        self.hand_number += 1

    def begin(self, role: Role, number: int, generation: int) -> None:
        """By the master, before the fork: begin a new incarnation in a free slot, with its counters at 0."""
        incarnation = as_count(self.incarnation) + 1
        self.clear()
        for hand in self.hands:
            hand.drop()
        if self.lanes:
            self.lanes.clear()
        self.incarnation = incarnation
        self.number, self.generation = number, generation
        self.wanted_back = -1
        self.role = role

    @property
    def lease_deadline(self) -> float:
        """Monotonic end of the running job's lease, as last renewed; 0.0 = no job runs, or it ended during the read.

        Of jobs that run side by side, the first end.
        """
        if not self.lease_end:
            return self.lanes.lease_deadline if self.lanes else 0.0
        # The worker writes while we read: the values count only if all are of the same hand.
        hand_number, end = self.hand_number, self.lease_end
        if self.renewed_hand == hand_number:
            end = self.renewed_end or end
        return end if self.hand_number == hand_number and self.lease_end else 0.0

    @property
    def holds_nothing(self) -> bool:
        """Whether the death of its process needs no settlement and no event.

        True for a helper, a template that the master ended, and a worker that exited cleanly without held jobs.
        """
        if self.role == Role.TEMPLATE and self.killed == Killed.STOP:
            return True
        is_unused = self.exited_cleanly and not self.reserve_sent_at and self.hand.is_empty
        return self.role in HELPERS or bool(is_unused and (self.lanes is None or self.lanes.is_empty))


def _in_lane(one: HeldLane) -> Running:
    about = one.job, one.job_id, one.lease.queue, one.attempt, one.since, one.deadline, one.track
    return Running(one.lane, *about, one.progress, one.note, one.policy)


def _shown_by(slot: Slot) -> list[Running]:
    """One, as a worker runs one job at a time."""
    about = slot.job, slot.job_id, slot.queue, slot.attempt, slot.since, slot.deadline, slot.track
    return [Running(slot.current_index, *about, fraction_of(slot.progress), slot.note, slot.policy)]
