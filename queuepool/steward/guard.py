"""Kill overdue orphaned workers, which have no master to do it."""

from __future__ import annotations

import logging
import time

from queuepool.board.board import Role, Slot
from queuepool.board.deadlines import overdue
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.unix import fork, proc

#: seconds between rounds while there are orphans, and while there are none
_TICK, _IDLE = 0.25, 1.0
_log = logging.getLogger("queuepool")


class Guard:
    """Enforces the deadlines and leases of orphans.

    ``grace``: seconds that a worker may be past its deadline. ``margin``: seconds before a lease's end at which its
    worker is killed, since the store may keep the steward waiting.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, grace: float, margin: float) -> None:
        self._orphaned_boards = orphaned_boards
        self._grace = grace
        self._margin = margin

    def run(self, now: float) -> float:
        orphans = [
            slot for board in self._orphaned_boards.orphaned() for slot in board.of(Role.WORKER) if is_living(slot)
        ]
        for slot in orphans:
            why = overdue(slot, time.monotonic(), self._grace, self._margin)
            if why:
                slot.killed = why
                fork.kill_other(slot.pid, lambda pid, slot=slot: proc.is_alive(pid, slot.start_time))  # type: ignore[misc]
                _log.warning("worker=%d pid=%d killed: %s", slot.number, slot.pid, why.name)
        return _TICK if orphans else _IDLE


def is_living(slot: Slot) -> bool:
    """Whether the slot's process is alive."""
    return not slot.dead and proc.is_alive(slot.pid, slot.start_time)
