"""What is known of a pool and of each of its processes: the fields of the board, each with one writer.

Deadlines are monotonic seconds, ``since`` is wall clock for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from queuepool.hand import Hand
from queuepool.record import Record, Seconds, Text, Whole
from queuepool.stores.base import Lease


class Role(IntEnum):
    """Whose slot it is."""

    FREE = 0
    WORKER = 1
    STEWARD = 2
    TEMPLATE = 3


class State(IntEnum):
    """What a process is doing; the names are those in ``ps``."""

    STARTING = 0
    RUNNING = 1
    IDLE = 2
    BUSY = 3
    PAUSED = 4
    DRAINING = 5
    STOPPING = 6
    #: a pool whose steward dies again and again
    FAILING = 7


class Killed(IntEnum):
    """Why the master killed a process, if it did."""

    NOT = 0
    OVERDUE = 1
    LEASE = 2
    MEMORY = 3
    STOP = 4


class Header(Record):
    """The pool as a whole."""

    magic = Whole()
    capacity = Whole()
    #: the store that all receipts on it are good for; see ``config_connections.identity_of``
    store = Text(32)
    # The master's.
    master_pid = Whole()
    master_born = Whole()
    state = Whole()
    target = Whole()
    since = Seconds()
    #: whether the last steward was killed by somebody else, and not by what it did
    steward_killed = Whole()
    # Of ended lives; the slots hold the others.
    done = Whole()
    failed = Whole()
    released = Whole()
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
    # Raised after every change of `down` and `paused`: a worker reads two fields a round.
    orders = Whole()
    # What it is at, and what those before it died of; see blame.py.
    doing = Text(100)
    died_of = Text(440)
    # Asked for by `queuepool scale`, taken by the master.
    scale = Whole()


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

    hands: tuple[Hand, Hand]
    index: int

    @property
    def hand(self) -> Hand:
        """What is held, this turn."""
        return self.hands[self.turn % 2]

    def hold(self, leases: Sequence[Lease], done: Sequence[Lease] = ()) -> None:
        """The worker's: the next turn begins, with this in its hand; whoever reads sees the one or the other."""
        self.hands[(self.turn + 1) % 2].hold(leases, done)
        self.turn += 1

    def begin(self, role: Role, number: int, generation: int) -> None:
        """The master's, before the fork: a new life in a free slot. Counters start anew."""
        life, settled = self.life + 1, self.settled_life
        self.clear()
        for hand in self.hands:
            hand.drop()
        self.life, self.settled_life = life, settled
        self.number, self.generation = number, generation
        self.wanted_back = -1
        self.role = role

    @property
    def lease_deadline(self) -> float:
        """Monotonic end of the running job's lease, as renewed last; 0.0 = no job runs, or it ended as we looked."""
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
