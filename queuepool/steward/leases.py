"""Keep the pool's jobs on time: renew leases, so that jobs may outlast ``retry_after``, and stage jobs that are due."""

from __future__ import annotations

import time
from collections.abc import Sequence

from queuepool.board.board import Role, Slot
from queuepool.board.held_jobs import Stage
from queuepool.payload.lease import Lease
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.stores.contract import QueueStore

#: seconds until a missing lease is checked once more
_RECHECK = 0.05
#: stages of jobs that the steward does not give back while their worker lives
_BEGUN = (Stage.READING, Stage.RUNNING)
#: seconds after the server's whole second, when Laravel's delays end; Laravel announces no new delayed jobs
_AFTER_THE_SECOND = 0.002


class Renew:
    """Renews all leases that living workers hold, in one call every third of ``retry_after``."""

    def __init__(self, orphaned_boards: OrphanedBoards, store: QueueStore, retry_after: float) -> None:
        self._orphaned_boards = orphaned_boards
        self._store = store
        self._retry_after = retry_after
        self._missed: set[tuple[Slot, int, Lease]] = set()

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
        renewed = self._store.renew([lease for _, _, lease in held])
        missed = {entry for entry, is_ours in zip(held, renewed, strict=True) if not is_ours}
        for slot, hand_number, _ in set(held) - missed:
            _renew_on_board(slot, hand_number, sent_at + self._retry_after)
        for slot, hand_number, _ in missed & self._missed:
            _renew_on_board(slot, hand_number, sent_at)  # the lease is lost: the master kills the worker now
        # Its worker may have just settled it: check once more.
        self._missed = missed
        return _RECHECK if missed else self._retry_after / 3


def _leases_of(slot: Slot) -> list[tuple[Slot, int, Lease]]:
    hand_number = slot.hand_number
    if not slot.lease_end or slot.dead or slot.settled_incarnation == slot.incarnation:
        return []
    try:
        kept = _BEGUN if slot.wanted_back == hand_number else (Stage.RESERVED, *_BEGUN, Stage.DONE)
        leases = [(slot, hand_number, one.lease) for one in slot.hand.held() if one.stage in kept]
    except (ValueError, OSError):
        return []  # its worker is writing it right now: a fresh lease needs no renewal
    return leases if slot.hand_number == hand_number else []


def _renew_on_board(slot: Slot, hand_number: int, end: float) -> None:
    slot.renewed_end = end
    slot.renewed_hand = hand_number


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
