"""Who lives, as plain facts: no system call here."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from queuepool.board import Killed, Role, Slot, State

#: seconds before a lease's end at which its worker must be dead
LEASE_MARGIN = 0.5


@dataclass(slots=True)
class Child:
    """One living process and its slot.

    ``born`` is monotonic; ``came`` once it was seen at work, ``told`` once it was asked to leave; ``pid`` is 0 while a
    template has still to fork it.
    """

    pid: int
    slot: Slot
    role: Role
    number: int
    generation: int
    born: float
    came: bool = False
    told: bool = False

    def __str__(self) -> str:
        return f"{self.role.name.lower()}={self.number} pid={self.pid}"

    @property
    def is_ready(self) -> bool:
        """Whether it has come so far as to work."""
        return self.slot.state != State.STARTING

    @property
    def was_killed(self) -> bool:
        """By SIGKILL, and not by the master: it need have done nothing wrong."""
        status = self.slot.status
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and self.slot.killed == Killed.NOT


@dataclass(frozen=True, slots=True)
class Plan:
    """Numbers that need a worker, and workers that are to leave."""

    spawn: list[int]
    retire: list[Child]


class Children:
    """The living, by pid."""

    def __init__(self) -> None:
        self._by_pid: dict[int, Child] = {}
        self._expected: list[Child] = []

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
        """Who forked an expected one has written its pid down: before it could become our child, or our dead one."""
        for child in [one for one in self._expected if one.slot.pid]:
            self._expected.remove(child)
            child.pid = child.slot.pid
            self.add(child)

    def newcomers(self) -> list[Child]:
        """Those that a template has forked, and that wait to be welcomed."""
        self.meet()
        return [child for child in self._by_pid.values() if not child.slot.born]

    def newly_ready(self) -> Iterator[Child]:
        """Each one once, when it has come to work."""
        for child in self:
            if child.is_ready and not child.came:
                child.came = True
                yield child

    def workers(self) -> list[Child]:
        return [child for child in self._by_pid.values() if child.role == Role.WORKER]

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


def overdue(slot: Slot, now: float, grace: float, margin: float = LEASE_MARGIN) -> Killed | None:
    """Why this process must be killed now; ``now`` is monotonic."""
    deadline, lease_end = slot.deadline, slot.lease_deadline  # each read once: their worker may change them meanwhile
    if deadline and now >= deadline + grace:
        return Killed.OVERDUE
    if lease_end and now >= lease_end - margin:
        return Killed.LEASE
    return None


def next_deadline(slot: Slot, grace: float) -> float:
    """When to look at it again; infinity when nothing is due."""
    deadline, lease_end = slot.deadline, slot.lease_deadline
    due = [deadline + grace] if deadline else []
    if lease_end:
        due.append(lease_end - LEASE_MARGIN)
    return min(due, default=float("inf"))
