"""Reload the pool when one of the application's files changes, for development."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Collection

from queuepool.board.board import Board
from queuepool.board.from_workers import published_files
from queuepool.unix import fork
from queuepool.unix.escape import first_of

#: seconds between looks
_PERIOD = 0.5
#: most files named in the log
_SHOWN = 3
_log = logging.getLogger("queuepool")


class ReloadOnChange:
    """Watches the times of the files that the workers have imported; it needs neither the store nor the modules.

    A file that is gone is not a change: editors replace files, and a worker without it would not boot.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._known: dict[str, tuple[int, int]] = {}
        self._changed: set[str] = set()
        self._due = 0.0

    def run(self, now: float) -> float:
        if now >= self._due:
            self._due = now + _PERIOD
            self._look()
        return max(self._due - now, 0.0)

    def _look(self) -> None:
        changed = {path for path, began in published_files(self._board).items() if self._has_changed(path, began)}
        if self._changed and not changed:  # nothing is still being written, as during a checkout
            self._reload(self._changed)
        self._changed = self._changed | changed if changed else set()

    def _has_changed(self, path: str, began: float) -> bool:
        try:
            found = os.stat(path)
        except OSError:
            return False
        stamp = found.st_mtime_ns, found.st_size
        known, self._known[path] = self._known.get(path), stamp
        # A file that is new to us may have been written while it was imported.
        return stamp != known if known else began <= found.st_mtime <= time.time()

    def _reload(self, files: Collection[str]) -> None:
        _log.info("changed: %s", first_of(sorted(files), _SHOWN))
        fork.signal_other(self._board.name.pid, signal.SIGHUP, lambda pid: os.getppid() == pid)
