"""Orders to a worker about a job that it runs."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class LaneOrder(IntEnum):
    """The steward's order to a worker about the job in one lane."""

    CANCEL = 1
    #: another worker may have the job
    LOST = 2
    #: as ``CANCEL``, and it goes back to its queue
    REQUEUE = 3


#: the orders of whoever cancels a job
CANCELS = (LaneOrder.CANCEL, LaneOrder.REQUEUE)


class CancelOrder(NamedTuple):
    """Which attempt is to end; ``by``: on whose behalf, ``requeue``: whether its job then goes back to its queue."""

    life: int
    #: or the turn of its lane
    hand: int
    number: int
    requeue: bool
    #: seconds for a job that can end by itself
    grace: float
    #: when it was given (monotonic)
    at: float
    by: str


#: seconds that a worker has to say whether a cancelled job ends by itself, if it may: it says so at once, unless C code
#: keeps it. Where many wait for the processor it took 30 ms at most; moments 13 times slower were seen
_ANSWER = 1.0


def due(at: float, grace: float, answered: float, *, is_plain: bool) -> float:
    """When a worker must be killed for an order. ``answered``: ``at`` = the job ends by itself, ``-at`` = it cannot.

    Of a plain function that is known before anybody answers, and so in C code, too.
    """
    if answered == at:
        return at + grace
    return at + (0.0 if is_plain or answered == -at else min(grace, _ANSWER))
