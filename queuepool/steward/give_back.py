"""Give back what waits in a hand behind a slow or stuck job: others may be idle."""

from __future__ import annotations

import time
from typing import NamedTuple

from queuepool.board.board import Role, Slot, State
from queuepool.board.held_jobs import HeldJob, Stage
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import Settler
from queuepool.steward.lost_replies import LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards

#: seconds that a job may run before those behind it are given back, and between two looks while anybody works or not
_PATIENCE, _TICK, _IDLE = 0.06, 0.03, 0.2
#: seconds in which whatever a worker has written before is seen by all
_SETTLES = 0.002
#: life, turn and number of the job that a slot's worker is at
_Place = tuple[int, int, int]


class _Stuck(NamedTuple):
    """A worker that has been at one job for long, all that it holds, and when it asked for what it has not heard of."""

    slot: Slot
    place: _Place
    tag: int
    held: list[HeldJob]
    asked: float

    def behind(self, stage: Stage) -> list[Lease]:
        """Of those besides the job, the ones that have come so far."""
        return [one.lease for number, one in enumerate(self.held) if number != self.place[2] and one.stage == stage]

    @property
    def holds_more(self) -> bool:
        return bool(self.held and (self.asked or self.behind(Stage.RESERVED) or self.behind(Stage.DONE)))


class GiveBack:
    """Says on the board what it wants back, waits for a moment, and takes it unless the worker has gone on meanwhile.

    A worker says which job it turns to, and then looks whether it may (``SlotWriter.turns_to``): it sees our word,
    and puts back the rest itself, or we see that it has gone on. No lock is held that a dead process could keep.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, settler: Settler, lost_replies: LostReplies) -> None:
        self._orphaned_boards = orphaned_boards
        self._settler = settler
        self._lost_replies = lost_replies
        self._at: dict[Slot, tuple[_Place, float]] = {}
        self._given: dict[Slot, tuple[int, int]] = {}

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        workers = [slot for board in self._orphaned_boards.all() for slot in board.of(Role.WORKER) if not slot.dead]
        stuck = [found for slot in workers if (found := self._stuck(slot, now))]
        for one in stuck:
            one.slot.wanted_back = one.place[1]
        if stuck:
            time.sleep(_SETTLES)
        for one in stuck:
            if _place(one.slot) == one.place:
                self._take(one)
                self._given[one.slot] = one.place[:2]
        return _TICK if any(slot.state == State.BUSY for slot in workers) else _IDLE

    def _stuck(self, slot: Slot, now: float) -> _Stuck | None:
        """What waits in its hand, when it has been at one job for longer than others should wait for."""
        if slot.state != State.BUSY or self._given.get(slot) == (place := _place(slot))[:2]:
            return None
        if self._at.get(slot, (None, 0.0))[0] != place:
            self._at[slot] = place, now
        if now - self._at[slot][1] < _PATIENCE:
            return None
        # All read before it is told: what is read later may be of the worker's next turn.
        found = _Stuck(slot, place, slot.tag, _held_at_a_job(slot), slot.asked)
        return found if found.holds_more and _place(slot) == place else None

    def _take(self, stuck: _Stuck) -> None:
        if stuck.asked:  # it came last, so it goes back first
            self._lost_replies.take(stuck.tag, stuck.asked, [one.lease for one in stuck.held])
        self._settler.delete(stuck.behind(Stage.DONE))
        self._settler.put_back(stuck.behind(Stage.RESERVED))
        self._settler.tell()


def _place(slot: Slot) -> _Place:
    return slot.life, slot.turn, slot.at


def _held_at_a_job(slot: Slot) -> list[HeldJob]:
    """All that it holds, if it is at a job."""
    try:
        held = slot.hand.held()
    except (ValueError, OSError):
        return []  # its worker is writing it this moment, so it is not stuck
    at = slot.at
    if not 0 <= at < len(held):
        return []
    # What is done may still be at its hook, or at what it has left on the loop: so long its lease is kept.
    is_at_it = held[at].stage in (Stage.RESERVED, Stage.RUNNING) or (held[at].stage == Stage.DONE and slot.lease_end)
    return held if is_at_it else []  # else that one is over: it is the store that its worker waits for
