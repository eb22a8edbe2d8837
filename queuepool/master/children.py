"""The children, living, or dead and not yet settled, in the master's own memory."""

from __future__ import annotations

import math
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from queuepool.board.board import HELPERS, Board, Killed, Role, Slot, State, next_deadline, overdue
from queuepool.board.fields import SlotFacts, Totals

#: seconds in which a template has certainly forked a worker
_HALF_FORKED = 60.0
#: seconds between two ticks that show that this process was paused; and seconds that its children then get to wake up
_PAUSE, _WAKE = 5.0, 2.0


@dataclass(frozen=True, slots=True)
class Replacements:
    """Numbers that need a worker, and workers to stop."""

    spawn: list[int]
    retire: list[Child]


class Children:
    """The living by pid, and the dead until they are settled.

    ``is_ours``: whether this pid is a child of this process, dead or alive, that is not yet reaped.
    """

    def __init__(self, is_ours: Callable[[int], bool]) -> None:
        self._is_ours = is_ours
        self._by_pid: dict[int, Child] = {}
        self._expected: list[Child] = []
        self._dead: list[Child] = []
        self._ticked_at, self._silent_until = math.inf, 0.0
        #: the totals of children that are gone
        self.ended = Totals()
        #: whether a worker has been ready since the start
        self.has_worked = False

    def __bool__(self) -> bool:
        return bool(self._by_pid)

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._by_pid.values()))

    def add(self, child: Child) -> None:
        self._by_pid[child.pid] = child

    def expect(self, child: Child) -> None:
        """Add a worker that the template of its generation will fork."""
        self._expected.append(child)

    def remove(self, pid: int) -> Child | None:
        """Remove a child; ``None`` for another process, inherited as PID 1. A template's pending forks are dropped."""
        self.adopt_expected()
        child = self._by_pid.pop(pid, None)
        if child and child.role == Role.TEMPLATE:
            for missed in [one for one in self._expected if one.generation == child.generation]:
                self._expected.remove(missed)
                missed.slot.role = Role.FREE
        return child

    def __contains__(self, pid: object) -> bool:
        self.adopt_expected()
        return pid in self._by_pid

    def adopt_expected(self) -> None:
        """Take in the expected workers that were forked: their pid is on the board before they become our children.

        A pid that is not a child's, or that of a known child, is ignored.
        """
        for child in list(self._expected):
            pid = child.slot.pid
            if pid and pid not in self._by_pid and self._is_ours(pid):
                self._expected.remove(child)
                child.pid = pid
                self.add(child)

    def newcomers(self) -> list[Child]:
        """Workers that a template has forked and that wait for ``Spawner.adopt_forked``."""
        self.adopt_expected()
        return [child for child in self._by_pid.values() if not child.start_time]

    def mark_dead(self, child: Child, status: int) -> None:
        """Keep a dead child, with its slot, until the steward has settled its held jobs."""
        child.dead, child.status = True, status
        if child.stop_sent and not (child.is_ready or child.killed):
            child.killed = Killed.STOP  # during its import, which a stop ends: not a death to report
        self._note_ready(child)  # it may have died before it was seen ready
        child.write()
        self._dead.append(child)

    def free_settled(self) -> None:
        """Free the slots of dead children that are settled or held no jobs; keep their totals."""
        for child in [one for one in self._dead if one.is_settled]:
            self._dead.remove(child)
            self.ended = self.ended.plus(child.slot.totals)
            child.slot.role = Role.FREE

    def counted(self) -> Totals:
        """The totals since the pool started."""
        totals = self.ended
        for child in (*self._by_pid.values(), *self._dead):
            totals = totals.plus(child.slot.totals)
        return totals

    def free_slot(self, board: Board) -> Slot | None:
        """A slot that no child has; ``None`` if there is none."""
        taken = {child.slot.index for child in (*self._by_pid.values(), *self._expected, *self._dead)}
        return next((slot for slot in board.slots if slot.index not in taken), None)

    @property
    def has_unsettled(self) -> bool:
        """Whether dead children are left whose jobs must still be settled."""
        return any(child.role != Role.STEWARD for child in self._dead)

    def overwritten(self, now: float, retry_after: float) -> list[Child]:
        """Children whose slots hold values that neither they nor the master wrote; the master's fields are restored."""
        found = []
        for child in self:
            if child.slot.facts != child.facts:
                child.write()
                found.append(child)
            elif not child.slot.is_plausible(now, retry_after):
                found.append(child)
        for child in self._expected:
            # The template writes its pid; it becomes our child a moment later, unless that pid is nonsense.
            written = child.slot.facts
            if written._replace(pid=0) != child.facts or (written.pid and now > child.forked_at + _HALF_FORKED):
                child.write()
        return found

    def newly_ready(self) -> Iterator[Child]:
        """Each child once, when it has become ready."""
        for child in self:
            if not child.was_ready and child.is_ready:
                child.was_ready = True
                self._note_ready(child)
                yield child

    def _note_ready(self, child: Child) -> None:
        self.has_worked |= child.role == Role.WORKER and child.is_ready

    def next_deadline(self, grace: float) -> float:
        """The monotonic time at which to check them again; infinity when nothing is due."""
        living = (child for child in self._by_pid.values() if not child.killed)
        return max(min((next_deadline(child.slot, grace) for child in living), default=math.inf), self._silent_until)

    def overdue(self, now: float, grace: float) -> Iterator[tuple[Child, Killed | None]]:
        """Each child, and why it must be killed now; at every tick. ``now`` is monotonic.

        A host that is frozen, or a container that is paused, stops the children as well: after a pause of our own they
        get time to show that they are alive. Deadlines and leases do not wait for that.
        """
        if now - self._ticked_at > _PAUSE:
            self._silent_until = now + _WAKE
        self._ticked_at = now
        for child in self:
            why = overdue(child.slot, now, grace)
            yield child, None if why == Killed.STALLED and now < self._silent_until else why

    def workers(self) -> list[Child]:
        return [child for child in self._by_pid.values() if child.role == Role.WORKER]

    def worker_slots(self) -> list[Slot]:
        """The slots of living workers, and of those that a template has yet to fork."""
        return [child.slot for child in (*self.workers(), *self._expected)]

    def steward(self) -> Child | None:
        return next((child for child in self._by_pid.values() if child.role == Role.STEWARD), None)

    @property
    def are_working(self) -> bool:
        """Whether a worker or a template is left."""
        return any(child.role not in HELPERS for child in self._by_pid.values())

    def has(self, role: Role) -> bool:
        """Whether a process of this kind is alive."""
        return any(child.role == role for child in self._by_pid.values())

    def templates(self) -> list[Child]:
        """The templates, newest first, without those that were stopped."""
        found = [child for child in self._by_pid.values() if child.role == Role.TEMPLATE and not child.stop_sent]
        return sorted(found, key=lambda child: child.generation, reverse=True)

    def plan(self, target: int, generation: int, most: int | None = None) -> Replacements:
        """Plan for one ready worker of this generation for each number from 1 to ``target``.

        A worker stops only when its replacement is ready, and one number is replaced at a time. So the pool is never
        too small, and a replacement that cannot boot costs no worker. A worker that takes no more jobs, since it leaves
        when its last one ends, is replaced at once and may take its time; its number gets no third worker meanwhile.

        If the pool has shrunk and grows again, a worker that was told to leave is replaced only while there are fewer
        than ``most`` workers, including those that are leaving (by default ``target``), or if no other worker takes
        jobs.
        """
        by_number: dict[int, list[Child]] = defaultdict(list)
        for child in sorted([*self.workers(), *self._expected], key=_birth, reverse=True):
            by_number[child.number].append(child)
        spawn = list[int]()
        living = [child for group in by_number.values() for child in group]
        staying = sum(not child.is_leaving for child in living)
        room = max((target if most is None else most) - len(living), 1 - staying)
        retire = [child for child in self.workers() if child.number > target]
        replacing = any(len(group) > 1 and not group[0].is_ready for group in by_number.values())
        for number in range(1, target + 1):
            group = by_number[number]
            is_full = any(child.is_draining for child in group[1:])
            if not group or (group[0].is_leaving and len(group) == 1):
                was_sent_away = bool(group) and group[0].stop_sent and group[0].generation == generation
                if not was_sent_away or len(spawn) < room:
                    spawn.append(number)
            elif group[0].generation < generation and not (replacing or is_full):
                spawn.append(number)
                replacing = True
            elif group[0].is_ready:
                retire += [one for one in group[1:] if not (one.is_draining and one.generation == group[0].generation)]
        return Replacements(spawn, retire)


def _birth(child: Child) -> tuple[int, float]:
    return child.generation, child.forked_at


@dataclass(slots=True)
class Child:
    """One process and its slot: what the master knows about it, in its own memory.

    The board holds a copy. A job can write anything there, so only the fields of the process itself and of the steward
    are read back.

    ``forked_at`` is monotonic; for a process that a template forks, it is when that was requested. ``start_time`` is
    the kernel's (``proc.start_time``), 0 until known. ``was_ready``: it was seen ready. ``stop_sent``: it was sent a
    stop. ``pid`` is 0 until a template has forked it; ``status`` is its wait status.
    """

    pid: int
    slot: Slot
    role: Role
    number: int
    generation: int
    forked_at: float
    was_ready: bool = False
    stop_sent: bool = False
    incarnation: int = 0
    start_time: int = 0
    dead: bool = False
    status: int = 0
    killed: Killed = Killed.NOT

    def __str__(self) -> str:
        return f"{self.role.name.lower()}={self.number} pid={self.pid}"

    @property
    def at_work(self) -> str:
        """Which jobs it runs, for the log; empty if none."""
        running = self.slot.running() if self.role == Role.WORKER else ()
        return "".join(f" job={one.job} id={one.id}" for one in running)

    @property
    def is_ready(self) -> bool:
        """Whether it has finished booting."""
        return self.slot.state != State.STARTING

    @property
    def is_draining(self) -> bool:
        """Whether it takes no more jobs, and leaves when those that it runs have ended."""
        return self.slot.state == State.DRAINING

    @property
    def is_leaving(self) -> bool:
        """Whether it drains, or was told to leave: a worker of one job at a time does not show that it drains."""
        return self.stop_sent or self.is_draining

    @property
    def was_killed(self) -> bool:
        """Whether it was killed by SIGKILL, not by the master: it may have done nothing wrong."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL and not self.killed

    @property
    def facts(self) -> SlotFacts:
        """The facts that the board must hold."""
        role, number, generation, incarnation = self.role, self.number, self.generation, self.incarnation
        started = self.pid, self.start_time
        return SlotFacts(role, number, generation, incarnation, *started, self.dead, self.status, self.killed)

    def write(self) -> None:
        """Write the facts to the board, for the other processes."""
        self.slot.facts = self.facts

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to settle for this dead process; writes its facts again."""
        self.write()
        return self.slot.settled_incarnation == self.incarnation or self.slot.holds_nothing
