"""A mutant of the cancellation of running jobs, whose kill may come when the next one has begun."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plant import QUICK, Plant

_CANCELS = replace(QUICK, only=("cancel_jobs",), with_kills=0.0, nap=(0.005, 0.03), seconds=3.0)

OF_CANCELS = {
    "cancellation of whichever job runs by then": Plant(
        "I33 another one cancelled",
        (
            (
                "board/cancel_orders.py",
                "    if not runs(slot, order.hand, order.number) or order_for(slot, order.number) != order:\n",
                "    if not slot.lease_end:\n",
            ),
            (
                "board/cancel_orders.py",
                "(order.life, order.hand, order.number) != (slot.incarnation, slot.hand_number, number)",
                "order.life != slot.incarnation",
            ),
        ),
        _CANCELS,
    ),
}
