"""Copy the meters to the file beside the board, where every process of this host can read them without the pool."""

from __future__ import annotations

import logging

from queuepool.board.board import Board
from queuepool.board.meter_memory import MeterMemory
from queuepool.board.meters import file_of
from queuepool.board.meters_file import MetersFile

_PERIOD = 1.0
_log = logging.getLogger("queuepool")


class PublishMeters:
    """Needs no store, so that the meters are read while it is away. ``memory`` has those of the board's pool."""

    def __init__(self, board: Board, memory: MeterMemory) -> None:
        self._board = board
        self._file = MetersFile(file_of(board.path), memory)
        self._due = 0.0
        self._problem = ""

    def run(self, now: float) -> float:
        if now >= self._due and self._is_there():
            self._due = now + _PERIOD
            self._write()
        return max(self._due - now, 0.0) or _PERIOD

    def _is_there(self) -> bool:
        """Whether the board is: without it, and without a master that removes all, the file would stay."""
        return self._board.path.exists() or self._board.has_master

    def _write(self) -> None:
        problem = ""
        try:
            if not self._file.write():
                _log.error("%s was damaged or gone, and is made anew", file_of(self._board.path))
        except OSError as error:
            problem = f"{error.strerror}"
        if problem and problem != self._problem:
            _log.error("cannot write %s: %s; next try in %gs", file_of(self._board.path), problem, _PERIOD)
        self._problem = problem
