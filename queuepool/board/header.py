"""The fields of the board about the pool as a whole. Each has one writer; see ``slot.py`` about what they may hold."""

from __future__ import annotations

from queuepool.board.facts import POOL_FACTS_SIZE, HeaderFacts, Totals
from queuepool.board.paused_queues import ROOM
from queuepool.board.record import Record, Seconds, Text, Whole, as_count


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
    #: whether the last steward was killed from outside, not by what it did
    steward_killed = Whole()
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
    # Written by `queuepool scale`, taken by the master: an order as of ``requests.word_of``.
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
    # Written by the master.
    #: monotonic: when its stop ends them; infinity = it waits for them, 0.0 = the pool is not being stopped
    end_orphans_at = Seconds()
    # What the steward's other threads are doing, for separate stores and for alerts; as `doing`.
    doing_aside = Text(40)
    doing_alerts = Text(40)
    # Written by the steward.
    #: since when the store refuses what is new, in Unix seconds; 0.0 = it has room
    store_full = Seconds()
    # Written by the master.
    #: 1 = a signal has asked it to stop. One that gives up drains as well, without this
    stop_asked = Whole()
    #: whether the last signal paused it, whatever its state: `State.PAUSED` or `State.RUNNING`; 0 = no signal yet
    signalled = Whole()
    # Written by the steward of a pool that scales.
    #: how many workers its jobs need, 0 = unknown; when that was found (monotonic), and why
    wish = Whole()
    wish_at = Seconds()
    wish_why = Text(62)
    # Written by the master. Without bounds, of a pool that does not scale, both are 0.
    fewest = Whole()
    most = Whole()
    #: whether an operator has ordered the number of workers, until when (monotonic; 0.0 = until another order)
    pinned = Whole()
    pinned_until = Seconds()
    #: why it does not follow the wish: a value of `Hold`
    held = Whole()

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
