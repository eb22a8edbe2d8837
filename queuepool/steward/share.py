"""How the pools that serve one queue share what waits in it: a function of what each of them can take on.

By what each may become, not by how busy it is: notices are some seconds old, and shares that followed what changes from
second to second would swing between the hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import floor

#: seconds of each turn, time enough for a look and a boot. By steps of this size, the fraction of the golden ratio,
#: turns are spread evenly, however many pools there are
_TURN, _STEP = 2.0, 0.6180339887498949
#: seconds of a run time below which jobs count as that long
_SHORTEST = 1e-3
#: digits to which sums of parts are exact
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Bid:
    """What one pool can take on of one queue, in jobs at once.

    ``owner``: the pool's instance, by which all pools order them. ``weight``: as many as its bounds allow.
    """

    owner: str
    weight: int
    #: those that the queue can have: without what it runs of others, nor workers that it does not get
    room: float
    #: the same, without those that are busy
    free: float
    #: whether it may get more workers than it has
    grows: bool = True

    def most(self, run_time: float | None, target_wait: float) -> float:
        """How many waiting jobs it can begin in time: of long ones, or of unknown length, one for each free place."""
        if run_time is None or run_time >= target_wait:
            return max(self.free, 0.0)
        return max(self.room, 0.0) * target_wait / max(run_time, _SHORTEST)


def share_of(own: Bid, others: Sequence[Bid]) -> float:
    """Our share, from 0 to 1, of what comes beyond what the present workers of all take: of the pools that can grow."""
    return own.weight / (own.weight + sum(other.weight for other in others if other.grows))


def part_of(own: Bid, others: Sequence[Bid], jobs: int, run_time: float | None, target_wait: float, turn: float) -> int:
    """How many of the ``jobs`` that wait are ours. ``turn``: as for ``whole``; times in seconds."""
    bids = sorted((own, *others), key=lambda bid: bid.owner)
    most = [bid.most(run_time, target_wait) for bid in bids]
    return whole(divided(jobs, [bid.weight for bid in bids], most), turn)[bids.index(own)]


def divided(amount: float, weights: Sequence[int], most: Sequence[float]) -> list[float]:
    """Parts of an amount by weight, none larger than what this one can do while another can do more.

    What is too much for all is divided by weight, so that the parts always add up to the amount. Weights are above 0.
    """
    parts = [0.0] * len(weights)
    left, weight_left = float(amount), sum(weights)
    # Those that are full first: each leaves the more for all that follow.
    for place in sorted(range(len(weights)), key=lambda place: most[place] / weights[place]):
        parts[place] = min(most[place], left * weights[place] / weight_left)
        left, weight_left = left - parts[place], weight_left - weights[place]
    return [part + left * weight / sum(weights) for part, weight in zip(parts, weights, strict=True)]


def whole(parts: Sequence[float], turn: float) -> list[int]:
    """The parts in whole jobs, with the same sum: each is rounded up in a share of all turns as large as its fraction.

    ``turn``, from 0 to below 1, is the same for all pools at one moment: so one of a hundred pools grows for a single
    job, at the next moment another one if that cannot, and no two of them for the same.
    """
    ends = [floor(round(end, _DIGITS) + turn) for end in accumulate(parts)]
    return [end - start for start, end in pairwise([0, *ends])]


def turn_at(seconds: float) -> float:
    """The turn at a time that all pools tell alike, from 0 to below 1."""
    return seconds // _TURN * _STEP % 1.0
