"""With ``reload``: what workers and templates tell the steward of the files that they have imported."""

from __future__ import annotations

import logging
import sys
import time

from queuepool.board.board import Board, Slot
from queuepool.board.module_files import imported, publish
from queuepool.events import Looping
from queuepool.events.listeners import LISTENERS

_log = logging.getLogger("queuepool")


class ModuleFiles:
    """Those of one process; a worker that a template forks begins with the template's."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._count = 0
        #: each with the Unix second since when it has been imported
        self._began: dict[str, float] = {}

    def tell(self, slot: Slot, began: float) -> None:
        """Tell those that have been imported since ``began`` (Unix seconds), too, if there are any."""
        if self._count == len(sys.modules):
            return
        self._count = len(sys.modules)
        self._began = dict.fromkeys(imported(), began) | self._began
        try:
            publish(self._board, slot, self._began)
        except OSError as error:
            _log.warning("the files of the modules cannot be told to the steward: %s", error)

    def watch(self, slot: Slot) -> None:
        """Also tell those that jobs import."""
        LISTENERS.add(Looping, lambda event: self.tell(slot, time.time()))
