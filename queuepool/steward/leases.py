"""Keep the pool's jobs on time: renew leases, so that jobs may outlast ``retry_after``, and stage jobs that are due."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from queuepool.board.board import Role, Slot
from queuepool.board.held_jobs import AT_WORK, Stage
from queuepool.board.lanes import LaneOrder
from queuepool.payload.lease import Lease
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import QueueStore

#: seconds until a missing lease is checked once more
_RECHECK = 0.05
#: seconds after the server's whole second, when Laravel's delays end; Laravel announces no new delayed jobs
_AFTER_THE_SECOND = 0.002


class Renew:
    """Renews all leases that living workers hold, in one call every third of ``retry_after``."""

    def __init__(self, orphaned_boards: OrphanedBoards, store: QueueStore, retry_after: float) -> None:
        self._orphaned_boards = orphaned_boards
        self._store = store
        self._retry_after = retry_after
        self._missed: set[_Renewed] = set()

    def run(self, now: float) -> float:
        held = [
            entry
            for board in self._orphaned_boards.all()
            for slot in board.of(Role.WORKER)
            for entry in _leases_of(slot)
        ]
        if not held:
            return self._retry_after / 3
        sent_at = time.monotonic()
        renewed = self._store.renew([one.lease for one in held])
        missed = {one for one, is_ours in zip(held, renewed, strict=True) if not is_ours}
        for one in set(held) - missed:
            one.lasts(sent_at + self._retry_after)
        for one in missed & self._missed:
            one.is_lost(sent_at)
        # Its worker may have just settled it: check once more.
        self._missed = missed
        return _RECHECK if missed else self._retry_after / 3


class _Renewed(NamedTuple):
    """A lease that a living worker holds. ``turn``: of its lane, or of the worker's hand if it has none."""

    slot: Slot
    turn: int
    lease: Lease
    lane: int | None = None

    def lasts(self, end: float) -> None:
        """Show that it ends then (monotonic)."""
        if self.lane is not None and self.slot.lanes:
            self.slot.lanes.renew(self.lane, self.turn, end)
        else:
            self.slot.renewed_end = end
            self.slot.renewed_hand = self.turn

    def is_lost(self, now: float) -> None:
        """Another worker may have the job: the master kills this one now, or the worker ends the job in the lane."""
        if self.lane is not None and self.slot.lanes:
            self.slot.lanes.order(self.lane, self.turn, LaneOrder.LOST)
        else:
            self.lasts(now)


def _leases_of(slot: Slot) -> list[_Renewed]:
    if slot.dead or slot.settled_incarnation == slot.incarnation:
        return []
    if slot.lanes:
        return [_Renewed(slot, one.turn, one.lease, one.lane) for one in slot.lanes.held()]
    hand_number = slot.hand_number
    if not slot.lease_end:
        return []
    try:
        # What has begun is never given back while its worker lives.
        kept = AT_WORK if slot.wanted_back == hand_number else (Stage.RESERVED, *AT_WORK, Stage.DONE)
        leases = [_Renewed(slot, hand_number, one.lease) for one in slot.hand.held() if one.stage in kept]
    except (ValueError, OSError):
        return []  # its worker is writing it right now: a fresh lease needs no renewal
    return leases if slot.hand_number == hand_number else []


class StageDue:
    """Makes delayed and expired jobs ready: at every whole second of the store's clock, and when one is due between."""

    def __init__(self, store: QueueStore, queues: Sequence[str]) -> None:
        self._store = store
        self._queues = queues

    def run(self, now: float) -> float:
        staged = self._store.stage(self._queues)
        if staged.next_due == 0.0:
            return 0.0  # a batch was full: more is due already
        next_second = 1 - staged.now % 1 + _AFTER_THE_SECOND
        return next_second if staged.next_due is None else min(staged.next_due, next_second)
