"""Renew the leases of running jobs, so that a job may be longer than retry_after."""

from __future__ import annotations

import time

from queuepool.board import Role, Slot
from queuepool.stores.base import Lease, QueueStore
from queuepool.wards import Wards

#: seconds between a lease found missing and the second look
_SECOND_LOOK = 0.05


class Renew:
    """Every third of ``retry_after``, all leases in living hands in one call."""

    def __init__(self, wards: Wards, store: QueueStore, retry_after: float) -> None:
        self._wards = wards
        self._store = store
        self._retry_after = retry_after
        self._missed: dict[Slot, int] = {}

    def run(self, now: float) -> float:
        boards = {id(board): board for board in (self._wards.own, *self._wards.boards())}.values()
        held = [entry for board in boards for slot in board.of(Role.WORKER) for entry in _leases_of(slot)]
        if not held:
            return self._retry_after / 3
        asked = time.monotonic()
        renewed = self._store.renew([(slot.tag, lease) for slot, _, lease in held])
        missed = {}
        for (slot, turn, _), still_ours in zip(held, renewed, strict=True):
            if still_ours:
                _write(slot, turn, asked + self._retry_after)
            elif self._missed.get(slot) == turn:
                _write(slot, turn, asked)  # over: the master kills it now
            else:
                # Perhaps its worker has settled it this very moment: look again.
                missed[slot] = turn
        self._missed = missed
        return _SECOND_LOOK if missed else self._retry_after / 3


def _leases_of(slot: Slot) -> list[tuple[Slot, int, Lease]]:
    turn = slot.turn
    if not slot.lease_end or slot.dead or slot.settled_life == slot.life:
        return []
    try:
        leases = [(slot, turn, one.lease) for one in slot.hand.held()]
    except (ValueError, OSError):
        return []  # its worker is writing it this moment: a fresh lease, not one to renew
    return leases if slot.turn == turn else []


def _write(slot: Slot, turn: int, end: float) -> None:
    slot.renewed_end = end
    slot.renewed_turn = turn
