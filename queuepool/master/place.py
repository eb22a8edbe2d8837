"""The pool's place on this host: its directory and its board, kept intact while the pool runs."""

from __future__ import annotations

import logging
import time

from queuepool.board.board import Board, Role, State
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.errors import QueuepoolError
from queuepool.master.children import Child, Children
from queuepool.unix import stray_processes

_log = logging.getLogger("queuepool")


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
