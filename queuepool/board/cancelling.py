"""Cancel a job that a worker of this host runs: find it, order its end on the board, and see what came of it.

The order is carried out by the worker, the master and the steward, whatever becomes of the process that gives it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from queuepool.board import cancel_orders
from queuepool.board.board import Board, Role, Slot
from queuepool.board.cancel_orders import CancelOrder
from queuepool.board.held_jobs import HeldJob, Running, Stage
from queuepool.errors import BadPayload
from queuepool.payload.envelope import decode
from queuepool.unix import file_lock, fork, proc


class Came(Enum):
    """What has become of an order."""

    #: the attempt was ended and is settled as ordered
    OF_IT = auto()
    #: the attempt had ended by itself, or its worker holds its lease no longer
    TOO_LATE = auto()


@dataclass(frozen=True, slots=True)
class RunningHere:
    """An attempt that a worker of this host has begun, and its place: no other attempt has these three numbers."""

    board: Board
    slot: Slot
    life: int
    hand: int
    job: Running

    @property
    def is_there(self) -> bool:
        """Whether it still runs."""
        slot = self.slot
        is_same = slot.incarnation == self.life and not slot.dead
        return is_same and cancel_orders.runs(slot, self.hand, self.job.number)


def running_on(board: Board) -> Iterator[RunningHere]:
    """The attempts that its workers are at, as far as the board shows them whole."""
    return filter(_is_whole, _shown_on(board))


def running_here(board: Board, job_id: str) -> Iterator[RunningHere]:
    """The attempts at jobs with this id; an id may have been pushed twice."""
    return filter(_is_whole, (one for one in _shown_on(board) if one.job.id == job_id))


def _shown_on(board: Board) -> Iterator[RunningHere]:
    for slot in board.of(Role.WORKER):
        life, hand = slot.incarnation, slot.hand_number  # first: what is read then is of this hand, or is refused
        for job, turn in slot.lanes_running() if slot.lanes else ((job, hand) for job in slot.running()):
            found = RunningHere(board, slot, life, turn, job)
            if found.is_there:
                yield found


def _is_whole(found: RunningHere) -> bool:
    """Whether the payload held at its place is that of the job that is shown: the texts may be of the one before."""
    try:
        held: HeldJob = next(one for one in found.slot.held() if one.number == found.job.number)
        payload = decode(held.lease.receipt, held.lease.attempts)
    except (ValueError, OSError, StopIteration, BadPayload):
        return False  # its worker writes the next hand right now
    return found.is_there and payload.id == found.job.id


def cancel_here(board: Board, job_id: str, *, by: str, grace: float, requeue: bool) -> Ordered | Contrary | None:
    """Order the end of the attempt at this job, if a worker of this board is at it. Does not wait.

    ``None`` also if another process is just giving an order: look again. The board must be open to write.
    """
    found = next(running_here(board, job_id), None)
    return order(found, by=by, grace=grace, requeue=requeue) if found else None


def order(found: RunningHere, *, by: str, grace: float, requeue: bool) -> Ordered | Contrary | None:
    """As ``cancel_here``, for an attempt that was found; ``None`` also if it has ended.

    Where an order stands that wants the same, this one only shortens its grace, and both are carried out as one.
    """
    given = CancelOrder(found.life, found.hand, found.job.number, requeue, grace, time.monotonic(), by)
    path = found.board.path
    try:
        with file_lock.held(path.with_name(f"{path.name}.orders")) as is_ours:
            if not (is_ours and found.is_there):
                return None
            if stands := cancel_orders.standing(found.slot, found.hand, found.job.number):
                if stands.requeue != requeue:
                    return Contrary(stands)
                cancel_orders.hasten(found.slot, stands, given.at + grace)
                given = stands
            else:
                cancel_orders.write(found.slot, given)
    except OSError:
        return None  # the directory is gone, and its pool with it
    ordered = Ordered(found, given)
    ordered.wake()
    return ordered


class Contrary(NamedTuple):
    """No order was given: one stands that wants something else of the job."""

    stands: CancelOrder

    def __str__(self) -> str:
        wish = "put it back" if self.stands.requeue else "record it as failed"
        return f"{self.stands.by} has ordered to {wish}, and that stands"


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order that was given."""

    found: RunningHere
    order: CancelOrder

    def wake(self) -> None:
        """Have the worker and the master look at the board now."""
        _wake(self.found.slot)
        wake_master(self.found.board)

    @property
    def came(self) -> Came | None:
        """What has become of it; ``None`` = nothing yet."""
        slot, found = self.found.slot, self.found
        if slot.incarnation == found.life:  # else it is over, and the slot is the next worker's
            is_settled = slot.settled_incarnation == found.life if slot.dead else self._has_ended
            if not (is_settled or cancel_orders.is_carried_out(slot, self.order)):
                return None
        # Written before the rest.
        return Came.OF_IT if cancel_orders.is_carried_out(slot, self.order) else Came.TOO_LATE

    @property
    def _has_ended(self) -> bool:
        """Whether its living worker has settled it, or has it done."""
        slot, number, hand = self.found.slot, self.found.job.number, self.found.hand
        if slot.lanes:
            return slot.lanes.has_ended(number, hand)
        if (slot.hand_number, slot.current_index) != (hand, number):
            return True
        return slot.hand.stage(number) != Stage.RUNNING


def wake_all(board: Board) -> None:
    """By a thread of the steward: have the steward and all workers look at the board now."""
    fork.wake_self()
    for slot in filter(board.has_living, board.of(Role.WORKER)):
        _wake(slot)


def _wake(slot: Slot) -> None:
    with suppress(OSError, ValueError):  # it has ended, or is another user's
        fork.signal_other(slot.pid, signal.SIGUSR1, lambda pid: proc.is_alive(pid, slot.start_time))


def wake_master(board: Board) -> None:
    """Have the board's master look at it now; a board whose master is dead is looked at by a steward."""
    with suppress(OSError, ValueError):
        fork.signal_other(board.name.pid, signal.SIGUSR1, lambda _: board.has_master)
