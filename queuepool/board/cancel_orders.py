"""The order on a slot to end the job that its worker runs.

It names one attempt by three numbers that no other attempt has: the worker's incarnation, the number of its hand, and
the job's number in that hand; of jobs that run side by side, each lane has an order of its own, by the lane's turn. A
job that can end by itself is told to, and the worker writes that it obeys; any other is ended with its worker. Between
the look at the board and the kill the job may end and the next one begin: whoever settles the dead worker compares
again, and gives that one back as if it had never begun.
"""

from __future__ import annotations

from queuepool.board.fields import Slot
from queuepool.board.held_jobs import Stage
from queuepool.board.orders import CancelOrder as CancelOrder
from queuepool.board.orders import due


def order_on(slot: Slot) -> CancelOrder | None:
    """The order on the slot, for whichever attempt; ``None`` if there is none, or if it is just being written."""
    at = slot.cancel_at
    if not at:
        return None
    place = slot.cancel_life, slot.cancel_hand, slot.cancel_index
    order = CancelOrder(*place, bool(slot.cancel_requeue), slot.cancel_grace, at, slot.cancel_by)
    return order if slot.cancel_at == at else None  # it is taken away before another one is written


def order_for(slot: Slot, number: int) -> CancelOrder | None:
    """The order to end the attempt at this held job."""
    if slot.lanes:
        return slot.lanes.cancelled(number)
    order = order_on(slot)
    if order is None or (order.life, order.hand, order.number) != (slot.incarnation, slot.hand_number, number):
        return None
    return order


def standing(slot: Slot, hand: int, number: int) -> CancelOrder | None:
    """The order that stands to end this attempt, of the worker that the slot has now; ``hand`` as of an order."""
    order = order_for(slot, number)
    return order if order and order.hand == hand else None


def runs(slot: Slot, hand: int, number: int) -> bool:
    """Whether its worker is in the midst of the attempt at this job: not before it, and not at its settlement."""
    if slot.lanes:
        return slot.lanes.runs(number, hand)
    is_at_it = bool(slot.lease_end) and slot.current_index == number and slot.hand.stage(number) == Stage.RUNNING
    return is_at_it and slot.hand_number == hand


def kill_at(slot: Slot) -> float:
    """The monotonic time at which an order demands the kill of the worker; 0.0 = never, as almost always."""
    if slot.lanes:
        return slot.lanes.kill_at()
    order = order_on(slot)
    if order is None:
        return 0.0
    is_plain = bool(slot.is_plain)  # first: what follows sees whether this is about the attempt that is meant
    if not runs(slot, order.hand, order.number) or order_for(slot, order.number) != order:
        return 0.0
    return due(order.at, order.grace, slot.cancel_obeyed, is_plain=is_plain)


def answer(slot: Slot, order: CancelOrder, *, can_end: bool) -> None:
    """By the worker: whether the job was told to end by itself; else it is ended at once.

    Once a job was told, a later "cannot" does not count: it only means that the job has just ended.
    """
    answered = order.at if can_end else -order.at
    if not can_end and _answered(slot, order) == order.at:
        return
    if slot.lanes:
        slot.lanes.answer(order.number, answered)
    else:
        slot.cancel_obeyed = answered


def _answered(slot: Slot, order: CancelOrder) -> float:
    return slot.lanes.answered(order.number) if slot.lanes else slot.cancel_obeyed


def hasten(slot: Slot, order: CancelOrder, until: float) -> None:
    """Have the grace of this order end by then (monotonic); by one process at a time. In one word: it stands on."""
    grace = max(until - order.at, 0.0)
    if grace >= order.grace:
        return
    if slot.lanes:
        slot.lanes.hasten(order.number, grace)
    else:
        slot.cancel_grace = grace


def write(slot: Slot, order: CancelOrder) -> None:
    """Write an order, in place of one to another attempt; by one process at a time. It counts once it is whole."""
    if slot.lanes:
        slot.lanes.cancel(order)
        return
    slot.cancel_at = 0.0
    slot.cancel_life, slot.cancel_hand, slot.cancel_index = order.life, order.hand, order.number
    slot.cancel_requeue, slot.cancel_grace, slot.cancel_by = int(order.requeue), order.grace, order.by
    slot.cancel_at = order.at


def carried_out(slot: Slot, order: CancelOrder) -> None:
    """By the worker, or once that is dead by the steward: the attempt is settled as ordered."""
    if slot.lanes:
        slot.lanes.carried_out(order)
    else:
        slot.cancel_done = order.at


def is_carried_out(slot: Slot, order: CancelOrder) -> bool:
    """Whether the attempt is settled as ordered."""
    return slot.lanes.is_carried_out(order) if slot.lanes else slot.cancel_done == order.at
