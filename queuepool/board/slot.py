"""What is known of a pool and of each of its processes: the fields of the board, each with one writer.

Deadlines are monotonic seconds, ``since`` is wall clock for people. What is read here may be nonsense, as a job can
write over it: the master has its fields in its own memory too, and writes them anew when they are not what it wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from queuepool.board.facts import FACTS_SIZE, POOL_FACTS_SIZE, Facts, PoolFacts, Totals
from queuepool.board.held_jobs import HeldJobs
from queuepool.board.record import Record, Seconds, Text, Whole, as_count
from queuepool.board.states import Killed, Role, State
from queuepool.payload.lease import Lease

#: seconds by which a lease may end later than one that was taken just now
_LATER = 1.0
_STATES = frozenset(State) - {State.FAILING}  # which is the pool's


class Header(Record):
    """The pool as a whole."""

    magic = Whole()
    capacity = Whole()
    # The master's.
    master_pid = Whole()
    master_born = Whole()
    state = Whole()
    target = Whole()
    # Of ended lives; the slots hold the others.
    done = Whole()
    failed = Whole()
    released = Whole()
    # Slots from here on have never been anybody's; 0 = unknown.
    used = Whole()
    #: which code is to run: raised by each restart
    generation = Whole()
    since = Seconds()
    #: the store that all receipts on it are good for; see ``config_connections.identity_of``
    store = Text(32)
    #: whether the last steward was killed by somebody else, and not by what it did
    steward_killed = Whole()
    # The steward's.
    restarts = Whole()
    restart_known = Whole()
    restart_stamp = Text(64)
    store_lost = Seconds()
    failed_store_lost = Seconds()
    control_store_lost = Seconds()
    #: failures that wait for the failed store
    unrecorded = Whole()
    down = Whole()
    paused = Text(2500)
    mourned = Whole()
    #: the last generation of which a process did not come to work, and why
    boot_failed = Whole()
    boot_problem = Text(300)
    # Raised after every change of `down` and `paused`: a worker reads two fields a round.
    orders = Whole()
    # What it is at, and what those before it died of; see board/blame.py.
    doing = Text(100)
    died_of = Text(440)
    # Asked for by `queuepool scale`, taken by the master.
    scale = Whole()
    # The first worker's of a generation, or its template's: whose jobs are in the log.
    announced = Whole()

    @property
    def facts(self) -> PoolFacts:
        """As they stand there."""
        return PoolFacts.unpacked(self.memory[self.base : self.base + POOL_FACTS_SIZE])

    @facts.setter
    def facts(self, facts: PoolFacts) -> None:
        self.memory[self.base : self.base + POOL_FACTS_SIZE] = facts.packed()

    def has_changed(self) -> None:
        """The steward's: what the workers are to know."""
        self.orders = as_count(self.orders) + 1

    def has_mourned(self) -> None:
        """The steward's: one more job that failed with its worker."""
        self.mourned = as_count(self.mourned) + 1

    def has_failed_to_boot(self, generation: int, problem: str) -> None:
        """The steward's: a process of this generation did not come to work."""
        self.boot_problem = problem
        self.boot_failed = generation

    @property
    def totals(self) -> Totals:
        """Of ended lives."""
        return Totals(as_count(self.done), as_count(self.failed), as_count(self.released))


class Slot(Record):
    """One process, alive or dead and not yet settled."""

    # The master's.
    role = Whole()
    number = Whole()
    generation = Whole()
    life = Whole()
    pid = Whole()
    born = Whole()
    dead = Whole()
    status = Whole()
    killed = Whole()
    # The process's own.
    state = Whole()
    left = Whole()
    tag = Whole()
    asked = Seconds()
    turn = Whole()
    at = Whole()
    deadline = Seconds()
    lease_end = Seconds()
    done = Whole()
    failed = Whole()
    released = Whole()
    rss = Whole()
    since = Seconds()
    attempt = Whole()
    job = Text(190)
    job_id = Text(130)
    queue = Text(200)
    policy = Text(2000)
    # The steward's.
    renewed_turn = Whole()
    renewed_end = Seconds()
    wanted_back = Whole()
    settled_life = Whole()

    hands: tuple[HeldJobs, HeldJobs]
    index: int

    @property
    def facts(self) -> Facts:
        """As they stand there."""
        return Facts.unpacked(self.memory[self.base : self.base + FACTS_SIZE])

    @facts.setter
    def facts(self, facts: Facts) -> None:
        self.memory[self.base : self.base + FACTS_SIZE] = facts.packed()

    @property
    def totals(self) -> Totals:
        """Of this life."""
        found = self.numbers()
        return Totals(*(as_count(found[name]) for name in Totals._fields))

    def is_plausible(self, now: float, retry_after: float) -> bool:
        """Whether its process can have written what stands there; ``now`` is monotonic."""
        found = self.numbers()
        times = [found[name] for name in ("asked", "deadline", "lease_end", "since")]
        counts = [found[name] for name in ("tag", "turn", "at", "done", "failed", "released", "rss")]
        is_one = found["state"] in _STATES and found["left"] in (0, 1) and counts == list(map(as_count, counts))
        is_in_time = max(found["asked"], found["lease_end"] - retry_after) <= now + _LATER
        return is_one and is_in_time and all(isfinite(at) and at >= 0.0 for at in times)

    @property
    def hand(self) -> HeldJobs:
        """What is held, this turn."""
        return self.hands[self.turn % 2]

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """The worker's: the next turn begins, with this in its hand; whoever reads sees the one or the other."""
        self.hands[(self.turn + 1) % 2].hold(leases, done)
        self.turn += 1

    def begin(self, role: Role, number: int, generation: int) -> None:
        """The master's, before the fork: a new life in a free slot. Counters start anew."""
        life = as_count(self.life) + 1
        self.clear()
        for hand in self.hands:
            hand.drop()
        self.life = life
        self.number, self.generation = number, generation
        self.wanted_back = -1
        self.role = role

    @property
    def lease_deadline(self) -> float:
        """Monotonic end of the running job's lease, as renewed last; 0.0 = no job runs, or it ended as we looked."""
        if not self.lease_end:
            return 0.0
        # Its worker writes while we read: what was read counts only if it is all of one and the same turn.
        turn, end = self.turn, self.lease_end
        if self.renewed_turn == turn:
            end = self.renewed_end or end
        return end if self.turn == turn and self.lease_end else 0.0

    @property
    def holds_nothing(self) -> bool:
        """Whether its dead needs no settlement, and nobody need hear of it.

        A steward; a template that the master ended; a worker that left in order with empty hands.
        """
        if self.role == Role.TEMPLATE and self.killed == Killed.STOP:
            return True
        return self.role == Role.STEWARD or bool(self.left and not self.asked and self.hand.is_empty)
