"""Boards whose master was killed. A steward looks after them: its own board's, and others' whose steward is dead too.

So a killed master's workers finish their jobs with their leases renewed and their deadlines held, and what they
leave is settled, whether or not a new master comes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from queuepool import proc
from queuepool.board import Board, Role
from queuepool.runtime import Runtime


class Wards:
    """Seen from one steward; ``own`` is the board of its pool."""

    def __init__(self, own: Board, runtime: Runtime) -> None:
        self.own = own
        self._runtime = runtime
        self._others: dict[Path, Board] = {}

    def boards(self) -> list[Board]:
        """Those that are ours to look after now."""
        paths = [path for path in self._runtime.board_paths() if path != self.own.path]
        self._others = {path: self._others.get(path) or self._open(path) for path in paths}  # type: ignore[misc]
        others = [
            board for board in self._others.values() if board and not _has_master(board) and not _has_steward(board)
        ]
        return [*([self.own] if self.is_orphaned() else []), *others]

    def all(self) -> list[Board]:
        """Our own, and those that are ours to look after; each once."""
        return [self.own, *(board for board in self.boards() if board is not self.own)]

    def is_orphaned(self) -> bool:
        """Whether our own master is dead."""
        return not _has_master(self.own)

    def _open(self, path: Path) -> Board | None:
        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                raise ValueError(f"{path} is not ours")  # it would have us delete and fail jobs of its choice
            return Board.open(path, write=True)
        except (OSError, ValueError):
            with suppress(OSError):  # half made, or another version's: its leases end by themselves
                path.unlink()
            return None


def _has_master(board: Board) -> bool:
    return proc.is_alive(*board.master)


def _has_steward(board: Board) -> bool:
    return any(proc.is_alive(slot.pid, slot.born) for slot in board.of(Role.STEWARD))
