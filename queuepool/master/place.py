"""The pool's place on this host: its directory and its board, kept intact, and what the master shows after each pass.

It shows the pool on the board, in ``ps``, by its beat, and to a service manager.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from queuepool.board.board import Board, Header, Role, State
from queuepool.board.health import lived_state
from queuepool.board.runtime_dir import ALIVE, RuntimeDir
from queuepool.board.status import title
from queuepool.config.settings import PoolSettings
from queuepool.errors import QueuepoolError
from queuepool.master.children import Child, Children
from queuepool.master.respawn import Respawn
from queuepool.master.service_manager import Herald, SignsOfPool
from queuepool.master.shutdown import Shutdown
from queuepool.unix import proc, stray_processes

#: seconds between two touches of the file ``ALIVE``
_TOUCH_INTERVAL = 0.25
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger("queuepool")


class Reporter:
    """Writes the master's fields of the header. A job can overwrite them, so they are kept here too."""

    def __init__(
        self,
        settings: PoolSettings,
        board: Board,
        runtime: RuntimeDir,
        children: Children,
        respawn: Respawn,
        shutdown: Shutdown,
        herald: Herald,
    ) -> None:
        self._name = settings.name
        self._board = board
        self._store = runtime.store
        self._children = children
        self._respawn = respawn
        self._shutdown = shutdown
        self._facts, self._signalled = board.header.facts, 0
        self._beat = Beat(board.header, runtime.path, children)
        self._herald = herald
        self._signs = SignsOfPool(settings, board)

    def show(self, target: int, generation: int, *, paused: bool) -> None:
        """Call at the end of each pass of the master's loop."""
        state = self._state(target, paused=paused)
        self._write(state, target, generation)
        self._write_pause(paused=paused)
        workers, totals = self._children.worker_slots(), self._children.counted()
        proc.show(title(self._name, state, workers, totals))
        self._beat.mark()
        if self._herald:
            self._notify()

    def _notify(self) -> None:
        signs = self._signs.now()
        if self._shutdown.code:
            signs = signs._replace(words=f"gives up, see the log: {signs.words}")
        self._herald.notify(signs, time.monotonic())

    def _write(self, state: State, target: int, generation: int) -> None:
        header, counts = self._board.header, self._children.ended._asdict()
        now = {"state": state, "target": target, "generation": generation, "used": self._board.used}
        self._facts = self._facts._replace(**now, **counts)
        if header.facts != self._facts:
            header.facts = self._facts
        if header.store != self._store:  # overwritten: the next start would ignore the board
            header.store = self._store

    def _write_pause(self, *, paused: bool) -> None:
        """For the parent, which forks the next master: the pause, which most states do not show."""
        if paused or self._signalled:
            self._signalled = State.PAUSED if paused else State.RUNNING
        if self._board.header.signalled != self._signalled:
            self._board.header.signalled = self._signalled

    def _state(self, target: int, *, paused: bool) -> State:
        if self._shutdown.has_begun:
            return State.DRAINING
        if self._respawn.is_failing:
            return State.FAILING
        if not self._board.header.restart_known:  # workers take no jobs before that
            return State.STARTING
        state, living = State.PAUSED if paused else State.RUNNING, self._children.worker_slots()
        return lived_state(state, target, [State(slot.state) for slot in living], cannot_boot=self._respawn.cannot_boot)


class Beat:
    """The master's beat: the end of its last pass, on the board and as the time of a file, for monitors.

    It shows that the loop runs, and nothing about the store or the jobs: those have their own deadlines. ``folder`` is
    the pool's directory.
    """

    def __init__(self, header: Header, folder: Path, children: Children) -> None:
        self._header = header
        self._file = folder / ALIVE
        self._children = children
        self._next_touch = 0.0
        #: wall-clock time at which the modules had first been imported; 0.0 = not yet
        self.ready = 0.0

    def mark(self) -> None:
        """A pass has ended."""
        self._header.beat = now = time.monotonic()
        if not self.ready and self._has_booted():
            self.ready = time.time()
        if self._header.ready != self.ready:  # new, or overwritten by a job
            self._header.ready = self.ready
        if now >= self._next_touch:
            self._next_touch = now + _TOUCH_INTERVAL
            _touch(self._file)

    def _has_booted(self) -> bool:
        """Whether the pool has started; also true while no worker may work yet because the store does not answer."""
        return bool(self._children.has_worked or self._header.announced)


def _touch(path: Path) -> None:
    # Others may have removed the file or put something else there. Touched by its path, without following links and
    # without opening it, that cannot hold us up; if it fails, the file stays old, and the board has the beat as well.
    with suppress(OSError):
        try:
            os.utime(path, follow_symlinks=False)
        except FileNotFoundError:
            os.close(os.open(path, _CREATE, 0o600))


class PoolPlace:
    """The directory and the board, for the master. Damage by others is repaired, and logged in one line each."""

    def __init__(self, settings: PoolSettings, board: Board, runtime: RuntimeDir, children: Children) -> None:
        self._settings = settings
        self._board = board
        self._runtime = runtime
        self._children = children
        #: stray processes that are another user's
        self._refused: set[int] = set()

    def keep(self) -> bool:
        """Restore the directory if something has removed it; ``False`` when that fails."""
        try:
            if self._runtime.keep():
                _log.error("runtime directory %s was removed; created again", self._runtime.path)
        except QueuepoolError as error:
            _log.critical("runtime directory %s was removed and cannot be created again: %s", self._runtime.path, error)
            return False
        return True

    def mark_dead(self, child: Child, status: int) -> None:
        """Keep a dead child for settlement. For a steward, record whether it was killed from outside."""
        self._children.mark_dead(child, status)
        if child.role == Role.STEWARD:
            self._board.header.steward_killed = int(child.was_killed)

    def sweep(self) -> None:
        """Kill the stray processes that dead workers' jobs have left behind."""
        marks = {self._board.mark(child.slot, child.incarnation) for child in self._children}
        self._refused = stray_processes.sweep(self._children, self._board.path.name, marks, self._refused)

    def leave(self) -> None:
        """Give up the directory. The board stays if it holds unsettled jobs, for the next master's steward."""
        if not self._children.has_unsettled:
            self._board.unlink()
        self._runtime.release()

    def overwritten(self) -> list[Child]:
        """Children whose slots hold values that no process of the pool can have written: no value there can be trusted.

        The steward is not among them, as it holds no jobs: its slot is cleared, and it writes a new deadline every
        second.
        """
        if self._board.restore_length():
            _log.error("%s was truncated; its length is restored", self._board.path)
        found = self._children.overwritten(time.monotonic(), self._settings.connection.retry_after)
        for child in found:
            if child.role == Role.STEWARD:
                child.slot.clear()
                child.slot.state = State.RUNNING
                child.write()
        return [child for child in found if child.role != Role.STEWARD and not child.killed]
