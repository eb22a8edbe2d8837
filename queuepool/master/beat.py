"""The master's beat: the end of its last pass, on the board and as the time of a file, for those that watch the pool.

It says that the loop runs, and nothing of the store or the jobs: those have deadlines of their own.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from queuepool.board.board import Header
from queuepool.board.runtime_dir import ALIVE
from queuepool.master.children import Children

#: seconds between two touches of the file
_INTERVAL = 0.25
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Beat:
    """Of one master. ``folder`` is the pool's directory."""

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
            self._next_touch = now + _INTERVAL
            _touch(self._file)

    def _has_booted(self) -> bool:
        """Whether the pool has started. It has, also while no worker may work yet because the store does not answer."""
        return bool(self._children.has_worked or self._header.announced)


def _touch(path: Path) -> None:
    # Others may have removed the file or put something else there. By its path, without following links and without
    # opening it, nothing of that holds us up; whatever fails, the file stays old, and the board has the beat as well.
    with suppress(OSError):
        try:
            os.utime(path, follow_symlinks=False)
        except FileNotFoundError:
            os.close(os.open(path, _NEW, 0o600))
