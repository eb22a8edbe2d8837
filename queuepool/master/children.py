"""Who lives, and who is dead and not yet settled: the master's own memory.

What stands on the board is a copy of it. A job can write anything there, so nothing is read back but what the process
itself, or the steward, has to say.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from queuepool.board.board import Board, Killed, Role, Slot, State
from queuepool.board.facts import Facts, Totals

#: seconds in which a template surely has forked a worker
_HALF_FORKED = 60.0


@dataclass(slots=True)
class Child:
    """One process and its slot.

    ``born`` is monotonic and ``birth`` the kernel's, 0 until it is known; ``came`` once it was seen at work, ``told``
    once it was asked to leave; ``pid`` is 0 while a template has still to fork it; ``status`` is how it ended.
    """

    pid: int
    slot: Slot
    role: Role
    number: int
    generation: int
    born: float
    came: bool = False
    told: bool = False
    life: int = 0
    birth: int = 0
    dead: bool = False
    status: int = 0
    killed: Killed = Killed.NOT

    def __str__(self) -> str:
        return f"{self.role.name.lower()}={self.number} pid={self.pid}"

    @property
    def is_ready(self) -> bool:
        """Whether it has come so far as to work."""
        return self.slot.state != State.STARTING

    @property
    def was_killed(self) -> bool:
        """By SIGKILL, and not by the master: it need have done nothing wrong."""
        return os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) == signal.SIGKILL and not self.killed

    @property
    def facts(self) -> Facts:
        """As they are to stand on the board."""
        role, number, generation, life = self.role, self.number, self.generation, self.life
        return Facts(role, number, generation, life, self.pid, self.birth, self.dead, self.status, self.killed)

    def write(self) -> None:
        """On the board, for the others to read."""
        self.slot.facts = self.facts

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do for this dead one."""
        self.write()
        return self.slot.settled_life == self.life or self.slot.holds_nothing


@dataclass(frozen=True, slots=True)
class Plan:
    """Numbers that need a worker, and workers that are to leave."""

    spawn: list[int]
    retire: list[Child]


class Children:
    """The living, by pid, and the dead until they are settled.

    ``is_ours``: whether this pid is a child of this process, dead and not yet reaped ones too.
    """

    def __init__(self, is_ours: Callable[[int], bool]) -> None:
        self._is_ours = is_ours
        self._by_pid: dict[int, Child] = {}
        self._expected: list[Child] = []
        self._dead: list[Child] = []
        #: what lives that are over counted
        self.ended = Totals()

    def __bool__(self) -> bool:
        return bool(self._by_pid)

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._by_pid.values()))

    def add(self, child: Child) -> None:
        self._by_pid[child.pid] = child

    def expect(self, child: Child) -> None:
        """A worker that the template of its generation is to fork."""
        self._expected.append(child)

    def remove(self, pid: int) -> Child | None:
        """``None`` for a stranger: a process we inherited as PID 1. With a template goes who was not forked yet."""
        self.meet()
        child = self._by_pid.pop(pid, None)
        if child and child.role == Role.TEMPLATE:
            for missed in [one for one in self._expected if one.generation == child.generation]:
                self._expected.remove(missed)
                missed.slot.role = Role.FREE
        return child

    def __contains__(self, pid: object) -> bool:
        self.meet()
        return pid in self._by_pid

    def meet(self) -> None:
        """Who forked an expected one has written its pid down: before it could become our child, or our dead one.

        A pid that is nobody's, or of a child that we know, is not to be believed.
        """
        for child in list(self._expected):
            pid = child.slot.pid
            if pid and pid not in self._by_pid and self._is_ours(pid):
                self._expected.remove(child)
                child.pid = pid
                self.add(child)

    def newcomers(self) -> list[Child]:
        """Those that a template has forked, and that wait to be welcomed."""
        self.meet()
        return [child for child in self._by_pid.values() if not child.birth]

    def bury(self, child: Child, status: int) -> None:
        """It keeps its slot until the steward has settled what it held."""
        child.dead, child.status = True, status
        child.write()
        self._dead.append(child)

    def free_settled(self) -> None:
        """The slots whose dead are settled, or held nothing; what they counted is kept."""
        for child in [one for one in self._dead if one.is_settled]:
            self._dead.remove(child)
            self.ended = self.ended.plus(child.slot.totals)
            child.slot.role = Role.FREE

    def counted(self) -> Totals:
        """Jobs since the pool began."""
        totals = self.ended
        for child in (*self._by_pid.values(), *self._dead):
            totals = totals.plus(child.slot.totals)
        return totals

    def free_slot(self, board: Board) -> Slot | None:
        """One that none of us has."""
        taken = {child.slot.index for child in (*self._by_pid.values(), *self._expected, *self._dead)}
        return next((slot for slot in board.slots if slot.index not in taken), None)

    @property
    def has_unsettled(self) -> bool:
        """Whether there are dead whose jobs somebody has still to settle."""
        return any(child.role != Role.STEWARD for child in self._dead)

    def overwritten(self, now: float, retry_after: float) -> list[Child]:
        """Whose place on the board holds what neither they nor we have written; ours is written anew."""
        found = []
        for child in self:
            if child.slot.facts != child.facts:
                child.write()
                found.append(child)
            elif not child.slot.is_plausible(now, retry_after):
                found.append(child)
        for child in self._expected:
            # Who forks it writes its pid; it is ours a moment later, unless that pid is nonsense.
            stands = child.slot.facts
            if stands._replace(pid=0) != child.facts or (stands.pid and now > child.born + _HALF_FORKED):
                child.write()
        return found

    def newly_ready(self) -> Iterator[Child]:
        """Each one once, when it has come to work."""
        for child in self:
            if not child.came and child.is_ready:
                child.came = True
                yield child

    def workers(self) -> list[Child]:
        return [child for child in self._by_pid.values() if child.role == Role.WORKER]

    def worker_slots(self) -> list[Slot]:
        """Of the living, and of those that a template has still to fork."""
        return [child.slot for child in (*self.workers(), *self._expected)]

    def steward(self) -> Child | None:
        return next((child for child in self._by_pid.values() if child.role == Role.STEWARD), None)

    def templates(self) -> list[Child]:
        """The newest first; not those that were ended."""
        found = [child for child in self._by_pid.values() if child.role == Role.TEMPLATE and not child.told]
        return sorted(found, key=lambda child: child.generation, reverse=True)

    def plan(self, target: int, generation: int) -> Plan:
        """One ready worker of this generation for each number from 1 to ``target``.

        An elder leaves when its replacement is ready, not before, and one number is replaced at a time: so the pool
        never is smaller than it should be, and a replacement that cannot boot costs nobody.
        """
        mates: dict[int, list[Child]] = defaultdict(list)
        for child in sorted([*self.workers(), *self._expected], key=lambda child: child.generation, reverse=True):
            mates[child.number].append(child)
        spawn = []
        retire = [child for child in self.workers() if child.number > target]
        replacing = any(len(group) > 1 and not group[0].is_ready for group in mates.values())
        for number in range(1, target + 1):
            group = mates[number]
            if not group:
                spawn.append(number)
            elif group[0].generation < generation and not replacing:
                spawn.append(number)
                replacing = True
            elif group[0].is_ready:
                retire += group[1:]
        return Plan(spawn, retire)
