"""Give back the jobs that a worker holds behind a slow or stuck one: other workers may be idle."""

from __future__ import annotations

from typing import NamedTuple

from queuepool.board.board import Role, Slot, State
from queuepool.board.held_jobs import HeldJob, Stage
from queuepool.payload.lease import Lease
from queuepool.settlement.settler import Settler
from queuepool.steward.lost_replies import LostReplies
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.unix.originals import sleep

#: seconds: run time after which the jobs behind are given back; pause while a worker is busy; pause while none is
_SLOW, _TICK, _IDLE = 0.06, 0.03, 0.2
#: seconds until what a worker has written before is visible to every process
_SETTLES = 0.002
#: a slot's incarnation, the number of its hand, and the index of the job that its worker runs
_Place = tuple[int, int, int]


class _Stuck(NamedTuple):
    """A worker that has run one job for long, all that it holds, and when it sent a reserve that has no reply."""

    slot: Slot
    place: _Place
    tag: int
    held: list[HeldJob]
    reserve_sent_at: float

    def others(self, stage: Stage) -> list[Lease]:
        """The leases of the other held jobs at this stage."""
        return [one.lease for number, one in enumerate(self.held) if number != self.place[2] and one.stage == stage]

    @property
    def holds_more(self) -> bool:
        """Whether there is anything to take besides the running job."""
        return bool(self.held and (self.reserve_sent_at or self.others(Stage.RESERVED) or self.others(Stage.DONE)))


class GiveBack:
    """Marks on the board what it wants back, waits a moment, and takes it unless the worker has moved on meanwhile.

    A worker first writes which job it starts, then checks for the mark (``Batch.next_job``). So either it sees
    the mark and gives back the rest itself, or the steward sees that it has moved on. No lock is needed, which a dead
    process could keep.
    """

    def __init__(self, orphaned_boards: OrphanedBoards, settler: Settler, lost_replies: LostReplies) -> None:
        self._orphaned_boards = orphaned_boards
        self._settler = settler
        self._lost_replies = lost_replies
        self._running_since: dict[Slot, tuple[_Place, float]] = {}
        self._given_back: dict[Slot, tuple[int, int]] = {}

    def run(self, now: float) -> float:
        self._lost_replies.look_again(now)
        workers = [slot for board in self._orphaned_boards.all() for slot in board.of(Role.WORKER) if not slot.dead]
        stuck = [found for slot in workers if (found := self._stuck(slot, now))]
        for one in stuck:
            one.slot.wanted_back = one.place[1]
        if stuck:
            sleep(_SETTLES)
        for one in stuck:
            if _place(one.slot) == one.place:
                self._take(one)
                self._given_back[one.slot] = one.place[:2]
        return _TICK if any(slot.state == State.BUSY for slot in workers) else _IDLE

    def _stuck(self, slot: Slot, now: float) -> _Stuck | None:
        """What the slot's worker holds, if it has run one job for longer than others should wait."""
        if slot.state != State.BUSY or self._given_back.get(slot) == (place := _place(slot))[:2]:
            return None
        if self._running_since.get(slot, (None, 0.0))[0] != place:
            self._running_since[slot] = place, now
        if now - self._running_since[slot][1] < _SLOW:
            return None
        # Read all of it before setting the mark: a later read may see the worker's next hand.
        found = _Stuck(slot, place, slot.tag, _held_at_a_job(slot), slot.reserve_sent_at)
        return found if found.holds_more and _place(slot) == place else None

    def _take(self, stuck: _Stuck) -> None:
        if stuck.reserve_sent_at:  # reserved last, so it goes back first
            self._lost_replies.take(stuck.tag, stuck.reserve_sent_at, [one.lease for one in stuck.held])
        self._settler.delete(stuck.others(Stage.DONE))
        self._settler.give_back_unstarted(stuck.others(Stage.RESERVED))
        self._settler.emit_noted()


def _place(slot: Slot) -> _Place:
    return slot.incarnation, slot.hand_number, slot.current_index


def _held_at_a_job(slot: Slot) -> list[HeldJob]:
    """All that the slot's worker holds, if it is running one of them; else nothing."""
    try:
        held = slot.hand.held()
    except (ValueError, OSError):
        return []  # its worker is writing it right now, so it is not stuck
    index = slot.current_index
    if not 0 <= index < len(held):
        return []
    # A done job may still run its hook or tasks that it left; until they end, the slot shows a lease.
    stage = held[index].stage
    is_running = stage in (Stage.RESERVED, Stage.READING, Stage.RUNNING) or (stage == Stage.DONE and slot.lease_end)
    return held if is_running else []  # otherwise the job is over, and its worker waits for the store
