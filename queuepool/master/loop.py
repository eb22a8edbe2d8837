"""The master's loop. It does only this: reap children, handle signals, kill, refill, sleep.

It decides from the board and the clock alone. It has no connection, thread, signal handler or user code, so
it cannot hang on any of them. It keeps its children and totals in its own memory, since jobs can overwrite the board.
"""

from __future__ import annotations

import logging
import signal
import time

from queuepool.board.board import HELPERS, RUNS_JOBS, Board, Killed, Role
from queuepool.board.requests import Requests
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.master.children import Child, Children
from queuepool.master.place import PoolPlace, Reporter
from queuepool.master.pool_size import PoolSize
from queuepool.master.respawn import EntryPoints, FirstBoot, Respawn, Spawner
from queuepool.master.service_manager import Herald
from queuepool.master.shutdown import Shutdown
from queuepool.unix import fork, proc
from queuepool.unix.signals import STOPS, Mailbox

#: seconds between two checks of the board when nothing is due; below the default grace, so no deadline is missed
TICK = 0.25
_log = logging.getLogger("queuepool")


class Master:
    """Keeps one pool at its size, and enforces its deadlines, until it is stopped."""

    def __init__(
        self, settings: PoolSettings, board: Board, runtime: RuntimeDir, entry_points: EntryPoints, herald: Herald
    ) -> None:
        self._settings = settings
        self._board, self._requests = board, Requests(board.header)
        self._mailbox, self._children = Mailbox(), Children(fork.is_child)
        self._place = PoolPlace(settings, board, runtime, self._children)
        self._respawn = Respawn(settings.give_up)
        self._first_boot = FirstBoot(board, self._respawn)
        self._spawner = Spawner(board, self._children, self._respawn, entry_points, preload=settings.preload)
        self._size = PoolSize(settings, board, self._children, self._respawn)
        self._generation, self._paused = 1, False
        self._shutdown = Shutdown(settings.stop_timeout, board.header)
        self._shutdown.has_uncounted = any(path != board.path for path in runtime.board_paths())
        self._reporter = Reporter(settings, board, runtime, self._children, self._respawn, self._shutdown, herald)

    def run(self) -> int:
        """Run until every child has exited; returns the exit code."""
        self._mailbox.open()
        signum = None
        while True:
            self._reap()
            self._handle_signal(signum)
            self._check_place()
            self._apply_requests()
            self._spawner.adopt_forked(paused=self._paused)
            self._kill()
            self._give_up_if_hopeless()
            self._refill()
            self._size.show()
            self._reporter.show(self._size.target, self._generation, paused=self._paused)  # also a last pause
            if self._shutdown.has_begun and not self._children:
                self._place.leave()
                return self._shutdown.code
            signum = self._mailbox.next(self._sleep_time())

    def _reap(self) -> None:
        dead = 0
        for dead, status in fork.reap(self._children):
            if child := self._children.remove(dead):
                self._mark_dead(child, status)
        if dead:
            self._place.sweep()

    def _mark_dead(self, child: Child, status: int) -> None:
        if self._first_boot.has_ended(child, status, self._children):
            return
        self._place.mark_dead(child, status)
        rest, why = self._respawn.died(child, time.monotonic())
        if rest:
            _log.error("%s %s: %s; next try in %.1fs", child, why, proc.cause_of(status), rest)
        elif child.role in HELPERS and not child.stop_sent:
            _log.warning("%s died: %s", child, proc.cause_of(status))
        if steward := self._children.steward():  # it settles the jobs that the dead process held
            fork.send_signal(steward.pid, signal.SIGUSR1)

    def _handle_signal(self, signum: int | None) -> None:
        self._shutdown.is_asked |= signum in STOPS
        match signum:
            case signal.SIGTERM | signal.SIGINT:
                self._stop(now=signum == signal.SIGINT and self._shutdown.has_begun)
            case signal.SIGQUIT:
                self._stop(now=True)
            case signal.SIGHUP:
                self._restart()
            case signal.SIGUSR2 | signal.SIGCONT:
                self._paused = signum == signal.SIGUSR2
                self._signal_workers(signal.Signals(signum))
            case signal.SIGTTIN | signal.SIGTTOU:
                self._size.add(1 if signum == signal.SIGTTIN else -1, time.monotonic())
        # CHLD and USR1 only wake.

    def _check_place(self) -> None:
        """Repair the directory and the board, and kill children whose slots were overwritten."""
        if not (self._shutdown.has_begun or self._place.keep()):
            self._stop(code=1)
        for child in self._place.overwritten():
            self._end(child, Killed.OVERWRITTEN)

    def _apply_requests(self) -> None:
        """Carry out what the steward and the command line have requested on the board."""
        now = time.monotonic()
        if order := self._requests.order():
            self._size.obey(order, now)
        if not self._shutdown.has_begun:
            self._size.follow(now)
        if self._requests.restart():
            self._restart()
        if self._requests.have_news():
            self._signal_workers(signal.SIGUSR1)  # they read the board when they wake

    def _stop(self, *, now: bool = False, code: int = 0) -> None:
        if not self._shutdown.has_begun:
            _log.info("stopping: %s", self._shutdown.words(self._children.workers(), at_once=now))
        self._shutdown.begin(time.monotonic(), code, at_once=now)
        for child in [*self._children.workers(), *self._children.templates()]:
            self._retire(child)

    def _restart(self) -> None:
        self._board.header.generation = self._generation = self._generation + 1
        self._respawn.reset_boots()
        _log.info("restarting: every worker is replaced, generation=%d", self._generation)

    def _signal_workers(self, signum: signal.Signals) -> None:
        for child in self._children.workers():
            fork.send_signal(child.pid, signum)

    def _retire(self, child: Child) -> None:
        was_sent, child.stop_sent = child.stop_sent, True
        if child.role == Role.TEMPLATE:  # it holds no jobs, and a module's import may not react to signals
            self._end(child, Killed.STOP)
        # Sent again while it runs no job: a signal that arrives just before a wait does not end that wait.
        elif not was_sent or child.slot.state not in RUNS_JOBS:
            fork.send_signal(child.pid, signal.SIGTERM)

    def _kill(self) -> None:
        now = time.monotonic()
        for child, why in self._children.overdue(now, self._settings.grace):
            why = why or self._is_unwanted(child, now)
            if why and not child.killed:
                self._end(child, why)

    def _end(self, child: Child, why: Killed) -> None:
        child.killed = why
        child.write()
        fork.kill(child.pid)
        if (why, child.role) != (Killed.STOP, Role.TEMPLATE):
            _log.warning("%s killed: %s (%s)%s", child, why.name, why.reason, child.at_work)

    def _is_unwanted(self, child: Child, now: float) -> Killed | None:
        if self._shutdown.is_overdue(child.role, now):
            return Killed.STOP
        limit = self._settings.memory_hard
        is_too_big = limit and child.slot.state in RUNS_JOBS and proc.resident_mb(child.pid) >= limit
        return Killed.MEMORY if is_too_big else None

    def _refill(self) -> None:
        self._children.free_settled()
        if self._shutdown.has_begun:
            self._stop()
            self._stop_helpers()
            return
        for child in self._spawner.fill(self._size.target, self._size.most, self._generation, paused=self._paused):
            self._retire(child)

    def _give_up_if_hopeless(self) -> None:
        """Stop a pool that is hopeless: its first boot has failed, or no process has become ready for too long."""
        for child in self._children.newly_ready():
            self._respawn.became_ready(child)
            self._shutdown.has_uncounted &= child.role != Role.STEWARD
        now, ready = time.monotonic(), {child.role for child in self._children if child.is_ready}
        self._respawn.watch(self._children, now)
        if self._shutdown.has_begun:
            return
        if self._first_boot.has_failed:
            self._stop(code=1)
            self._shutdown.shorten(now)
        elif hopeless := self._respawn.hopeless(now, ready):
            what = "no steward has stayed alive" if hopeless == Role.STEWARD else "no worker has become ready"
            _log.critical("%s for %gs: giving up", what, self._settings.give_up)
            self._stop(code=1)

    def _stop_helpers(self) -> None:
        """When all workers have exited. The steward first settles their jobs, and is replaced if it dies early."""
        if self._children.are_working:
            return
        now = time.monotonic()
        awaits_orphans = self._shutdown.awaits_orphans(now) and not self._respawn.is_failing
        needs_steward = self._shutdown.needs_steward or self._children.has_unsettled
        awaits_boot = needs_steward and self._shutdown.awaits_boot(self._children.steward(), now)
        has_time = awaits_orphans or awaits_boot or self._shutdown.workers_have_left(now)
        for child in self._children:
            if child.role != Role.STEWARD or not needs_steward:
                self._retire(child)
        if needs_steward and has_time and not self._children.steward():
            self._spawner.spawn(Role.STEWARD, 0, self._generation)

    def _sleep_time(self) -> float:
        now, kill_at = time.monotonic(), self._shutdown.kill_at
        due = self._children.next_deadline(self._settings.grace)
        return min(TICK, due - now, kill_at - now if kill_at > now else TICK)
