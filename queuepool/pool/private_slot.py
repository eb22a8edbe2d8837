"""A slot for a worker without a pool."""

from __future__ import annotations

import os
from pathlib import Path

from queuepool.board.board import Board, Role, Slot
from queuepool.board.held_jobs import HeldJobs
from queuepool.unix import proc


class _UnreadHeldJobs(HeldJobs):
    """No steward settles a lone worker's jobs, so what is too large for the board need not be kept beside it."""

    def _file(self, number: int) -> Path:
        return Path(os.devnull)


def private_slot() -> Slot:
    """A slot on a board that no other process can see."""
    board = Board.private()
    slot = board.slots[0]
    hand = _UnreadHeldJobs(slot.memory, slot.base + Slot.size, board.path)
    slot.hands = hand, hand
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.start_time = os.getpid(), proc.start_time(os.getpid())
    return slot
