"""Kill overdue orphaned workers, which have no master to do it; all of them when a stop waits no longer."""

from __future__ import annotations

import logging
import time

from queuepool.board.board import Board, Killed, Role, Slot, State
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
        self._described: set[tuple[int, int]] = set()

    def run(self, now: float) -> float:
        self._end_overwritten()
        orphans = self.orphans()
        self._orphaned_boards.own.header.orphans = len(orphans)  # the master's stop waits for them
        for slot in orphans:
            if why := self._is_unwanted(now) or overdue(slot, time.monotonic(), self._grace, self._margin):
                _kill(slot, why)
        return _TICK if orphans else _IDLE

    def _end_overwritten(self) -> None:
        """Kill workers of our own, dead master that their slots no longer describe: a job has written over the board.

        Their leases can no longer be renewed. A living master notices by itself.
        """
        if not self._orphaned_boards.is_orphaned():
            return
        described = {(slot.pid, slot.start_time) for slot in self._orphaned_boards.own.of(Role.WORKER)}
        for pid, started in self._described - described:
            if proc.is_alive(pid, started):
                fork.kill_other(pid, lambda pid, started=started: proc.is_alive(pid, started))  # type: ignore[misc]
                _log.warning("pid=%d killed: %s", pid, Killed.OVERWRITTEN.name)
        self._described = described

    def _is_unwanted(self, now: float) -> Killed | None:
        """The master decides when a stop has waited for long enough; no steward would look after them after it."""
        header = self._orphaned_boards.own.header
        return Killed.STOP if header.state == State.DRAINING and 0.0 < header.end_orphans_at <= now else None

    def orphans(self) -> list[Slot]:
        """The living workers of killed masters that no other steward looks after."""
        boards = self._orphaned_boards.orphaned()
        return [slot for board in boards for slot in board.of(Role.WORKER) if is_living(board, slot)]


def _kill(slot: Slot, why: Killed) -> None:
    slot.killed = why
    fork.kill_other(slot.pid, lambda pid: proc.is_alive(pid, slot.start_time))
    _log.warning("worker=%d pid=%d killed: %s", slot.number, slot.pid, why.name)


def is_living(board: Board, slot: Slot) -> bool:
    """Whether the slot's process is alive."""
    return not slot.dead and board.has_living(slot)
