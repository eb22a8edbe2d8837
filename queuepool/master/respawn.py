"""When to replace a dead process, and how it is started: the master forks it, or a template with preloaded modules.

At once, or with a growing backoff when processes of its kind die repeatedly.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping

from queuepool.board.board import HELPERS, RUNS_JOBS, Board, Killed, Role, Slot
from queuepool.board.boot_report import read
from queuepool.events import BootFailed
from queuepool.log.formats import line_of
from queuepool.master.children import Child, Children
from queuepool.unix import fork, proc
from queuepool.unix.exit_codes import BOOT

#: a worker that dies within these seconds without a finished job has died young
_SHORT = 5.0
#: seconds after which a template, which runs no jobs, and a helper count as healthy. A steward must outlive its first
#: rounds, as what it finds in them may kill it
_MOMENT, _STEADY = 1.0, 10.0
#: how many failures in a row of its steward make a pool failing
_FAILING_AFTER = 2
#: the kinds without which no jobs are run
_NEEDED = (Role.WORKER, Role.STEWARD, Role.TEMPLATE)
_MAX_DOUBLINGS = 16
#: the generation before any restart: while a later one boots, older workers continue
_FIRST_GENERATION = 1
_log = logging.getLogger("queuepool")
#: what each kind of process runs: in this slot, paused at first if True; returns its exit code
EntryPoints = Mapping[Role, Callable[[Slot, bool], int]]


class RespawnDelay:
    """Seconds to wait before the next try: none after the first ``free`` failures, then twice as long each time."""

    def __init__(self, shortest: float = 0.5, longest: float = 60.0, free: int = 0) -> None:
        self._shortest = shortest
        self._longest = longest
        self._free = free
        #: how many in a row
        self.failures = 0
        self._until = 0.0
        #: monotonic time of the first of these failures; infinity = there is none
        self.since = float("inf")

    def failed(self, now: float) -> float:
        """Count a failure; returns the seconds to wait. Failures during that wait count as one with it."""
        if now >= self._until:
            self.since = min(self.since, now)
            self.failures += 1
            doublings = self.failures - self._free - 1
            delay = min(self._shortest * 2 ** min(doublings, _MAX_DOUBLINGS), self._longest) if doublings >= 0 else 0.0
            self._until = now + delay
        return self._until - now

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0
        self.since = float("inf")

    def is_over(self, now: float) -> bool:
        """Whether the wait is over; ``now`` is monotonic."""
        return now >= self._until


class Respawn:
    """The backoff of each kind of process.

    ``give_up``: seconds after which a kind of process that never becomes ready is hopeless; 0 = never.
    """

    def __init__(self, give_up: float = 0.0) -> None:
        self._give_up = give_up or float("inf")
        self._boots = {role: RespawnDelay() for role in Role}
        # A process that is killed while it boots has not failed: the next one may succeed.
        self._killed = {role: RespawnDelay(0.1, free=5) for role in Role}
        # By number, for workers that died young in a job: `max_crashes` ends that, job by job. The backoff is short, as
        # good jobs wait behind the bad ones.
        self._crash_loops: dict[int, RespawnDelay] = defaultdict(lambda: RespawnDelay(0.1, 1.0, free=5))
        #: whether a worker or a template has become ready since the start
        self.has_booted = False

    def reset_boots(self) -> None:
        """Reset the backoff of failed boots: new code need not wait for the failures of the old."""
        self._boots[Role.WORKER], self._boots[Role.TEMPLATE] = RespawnDelay(), RespawnDelay()

    def became_ready(self, child: Child) -> None:
        """A child has become ready, so booting is possible."""
        if child.role not in HELPERS:
            self.has_booted = True
            self._boots[child.role].succeeded()
        self._killed[child.role].succeeded()

    def watch(self, children: Iterable[Child], now: float) -> None:
        """A helper that has lived for long enough cancels the failures of those before it."""
        for child in children:
            if child.role in HELPERS and child.is_ready and now >= child.forked_at + _STEADY:
                self._boots[child.role].succeeded()

    @property
    def is_failing(self) -> bool:
        """Whether the pool's stewards die repeatedly."""
        return self._boots[Role.STEWARD].failures >= _FAILING_AFTER

    @property
    def cannot_boot(self) -> bool:
        """Whether workers, or the template that forks them, have failed since the last that became ready."""
        kinds = Role.WORKER, Role.TEMPLATE
        return any(backoffs[role].failures for backoffs in (self._boots, self._killed) for role in kinds)

    def failed_to_fork(self, role: Role, now: float) -> float:
        """Count a failed fork; returns the seconds to wait before the next."""
        return self._boots[role].failed(now)

    def died(self, child: Child, now: float) -> tuple[float, str]:
        """Seconds to wait before its successor is forked, and why in words; 0.0 = none."""
        self.has_booted |= child.is_ready and child.role not in HELPERS  # it may have died before it was seen ready
        if child.stop_sent or (child.role in HELPERS and child.status == 0):
            return 0.0, ""  # told to leave, by its master or from outside
        if not child.is_ready:
            backoffs = self._killed if _was_killed(child.status) else self._boots
            return backoffs[child.role].failed(now), "never became ready"
        if child.role in HELPERS:
            is_harmless = child.was_killed or now >= child.forked_at + _STEADY
            return (0.0 if is_harmless else self._boots[child.role].failed(now)), "died young"
        if child.role == Role.TEMPLATE:
            return (self._boots[child.role].failed(now) if now < child.forked_at + _MOMENT else 0.0), "died at once"
        return self._count_crash_loop(child, now), "died young again"

    def _count_crash_loop(self, child: Child, now: float) -> float:
        slot = child.slot
        is_asked = child.killed in (Killed.STOP, Killed.CANCELLED)
        if slot.done or slot.exited_cleanly or is_asked or now >= child.forked_at + _SHORT:
            self._crash_loops.pop(child.number, None)
            return 0.0
        if slot.state not in RUNS_JOBS:
            return 0.0  # killed from outside while it ran no job
        return self._crash_loops[child.number].failed(now)

    def is_over(self, role: Role, number: int, now: float) -> bool:
        """Whether this process may be forked now."""
        is_free = number not in self._crash_loops or self._crash_loops[number].is_over(now)
        return is_free and self._boots[role].is_over(now) and self._killed[role].is_over(now)

    def hopeless(self, now: float, ready: Container[Role]) -> Role | None:
        """A kind of process that the pool needs and that has failed for ``give_up`` seconds; ``None`` if there is none.

        ``ready``: the kinds with a ready process. Workers can do without a template, but not without a steward.
        """
        needed = (Role.STEWARD,) if Role.WORKER in ready else _NEEDED
        for role in needed:
            since = min(self._boots[role].since, self._killed[role].since)
            if role not in ready and now >= since + self._give_up:
                return role
        return None


def _was_killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM)


class FirstBoot:
    """The first boot of a pool, which is over when a worker or a template is ready.

    If the code cannot be imported then, the pool exits instead of trying again.
    """

    def __init__(self, board: Board, respawn: Respawn) -> None:
        self._board = board
        self._respawn = respawn
        self._logged_problem = ""
        self.has_failed = False

    def has_ended(self, child: Child, status: int, others: Children) -> bool:
        """Whether this death belongs to a failed first boot: then there is nothing left to settle or to report."""
        if not (child.is_ready or child.stop_sent) and os.waitstatus_to_exitcode(status) == BOOT:
            self._handle_failure(child, status, others)
        if not self.has_failed or child.is_ready:
            return False
        child.slot.role = Role.FREE
        return True

    def _handle_failure(self, child: Child, status: int, others: Children) -> None:
        """The first child that cannot import its modules decides, unless it is a steward: workers import them too."""
        if child.role == Role.STEWARD:
            self._log_cause(child, status, logging.ERROR)
        elif not self._any_has_booted(others) and child.generation == _FIRST_GENERATION:
            self._log_cause(child, status, logging.CRITICAL)
            if not self.has_failed:
                _log.critical("no worker has become ready since the start: the pool exits")
            self.has_failed = True

    def _any_has_booted(self, others: Children) -> bool:
        return self._respawn.has_booted or any(other.is_ready for other in others if other.role not in HELPERS)

    def _log_cause(self, child: Child, status: int, level: int) -> None:
        """Log the cause, unless it was the last one logged."""
        report = read(self._board.trace(child.slot), status)
        if report.problem != self._logged_problem:
            self._logged_problem = report.problem
            event = BootFailed(child.number, report.trace, report.problem)
            _log.log(level, "%s", line_of(event), extra={"event": event})


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
