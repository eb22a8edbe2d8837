"""Starts the pool's processes: the master forks them or, with preloaded modules, a template does so for it."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Mapping

from queuepool.board.board import HELPERS, Board, Role, Slot
from queuepool.master.children import Child, Children
from queuepool.master.respawn import Respawn
from queuepool.unix import fork, proc

_log = logging.getLogger("queuepool")

#: what each kind of process runs: in this slot, paused at first if True; returns its exit code
EntryPoints = Mapping[Role, Callable[[Slot, bool], int]]


class Spawner:
    """Starts processes for the master."""

    def __init__(
        self,
        board: Board,
        children: Children,
        respawn: Respawn,
        entry_points: EntryPoints,
        *,
        preload: bool,
    ) -> None:
        self._board = board
        self._children = children
        self._respawn = respawn
        self._entry_points = entry_points
        self._preload = preload

    def fill(self, target: int, most: int, generation: int, *, paused: bool) -> list[Child]:
        """Start the missing processes; returns those to stop. ``most``: as in ``Children.plan``."""
        for helper in HELPERS:
            if helper in self._entry_points and not self._children.has(helper):
                self.spawn(helper, 0, generation)
        if self._preload:
            return self._fill_from_template(target, most, generation)
        plan = self._children.plan(target, generation, most)
        for number in plan.spawn:
            self.spawn(Role.WORKER, number, generation, paused=paused)
        return plan.retire

    def _fill_from_template(self, target: int, most: int, generation: int) -> list[Child]:
        """Until the template of a new generation is ready, the last one continues: code that fails costs no worker.

        While none is ready, the oldest one continues too: otherwise repeated restarts would keep a pool from starting.
        """
        templates = self._children.templates()
        if not any(template.generation == generation for template in templates):
            self.spawn(Role.TEMPLATE, 0, generation)
        ready = next((template for template in templates if template.is_ready), None)
        plan = self._children.plan(target, ready.generation if ready else 0, most)
        if ready:
            for number in plan.spawn:
                self._request(number, ready)
        retained = ready or next(reversed(templates), None)
        return [*plan.retire, *(one for one in templates if one is not retained and one.generation < generation)]

    def spawn(self, role: Role, number: int, generation: int, *, paused: bool = False) -> None:
        """Fork a process, unless its backoff forbids it."""
        slot, now = self._take_slot(role, number, generation), time.monotonic()
        if slot is None:
            return
        try:
            pid = fork.spawn(lambda: self._entry_points[role](slot, paused))
        except OSError as error:
            slot.role = Role.FREE
            _log.error("cannot fork: %s; next try in %.1fs", error.strerror, self._respawn.failed_to_fork(role, now))
            return
        child = Child(
            pid,
            slot,
            role,
            number,
            generation,
            now,
            incarnation=slot.incarnation,
            start_time=proc.start_time_if_readable(pid),
        )
        child.write()
        self._children.add(child)

    def _request(self, number: int, template: Child) -> None:
        """Request a worker by a slot without a pid, and wake the template, which then looks for such slots."""
        slot = self._take_slot(Role.WORKER, number, template.generation)
        if slot:
            now, generation = time.monotonic(), template.generation
            self._children.expect(Child(0, slot, Role.WORKER, number, generation, now, incarnation=slot.incarnation))
            fork.send_signal(template.pid, signal.SIGUSR1)

    def adopt_forked(self, *, paused: bool) -> None:
        """Release the workers that a template has forked: they wait until their start time is on the board."""
        for child in self._children.newcomers():
            if paused:
                fork.send_signal(child.pid, signal.SIGUSR2)
            child.start_time = proc.start_time_if_readable(child.pid)
            child.write()

    def _take_slot(self, role: Role, number: int, generation: int) -> Slot | None:
        """A slot for a new process; ``None`` when there is none, no room for it, or its backoff forbids it."""
        slot, now = self._children.free_slot(self._board), time.monotonic()
        if slot is None or not self._respawn.is_over(role, number, now):
            return None
        try:
            self._board.allocate(slot)
        except OSError as error:
            rest = self._respawn.failed_to_fork(role, now)
            _log.error("no room in %s: %s; next try in %.1fs", self._board.path.parent, error.strerror, rest)
            return None
        slot.begin(role, number, generation)
        return slot
