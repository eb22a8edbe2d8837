"""Weighted queues: which one a worker asks first, so that each gets its share of the jobs and none starves."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

from queuepool.payload.lease import Lease


class Turns:
    """The turns of one worker's queues, by weights: of ten jobs from ``high*6``, ``low*4``, four are from ``low``.

    Each job moves its queue back by the inverse of the weight, and the foremost queue is asked first. So what counts is
    the jobs that came, however many a reserve has brought, and only the queues that have jobs share the worker.

    ``draw``: a number from 0 to below 1, at random, by which it is drawn where each begins.
    """

    # As if they had been going for long: one queue is first, each with its share of the chances, and the others are
    # anywhere in their distance between two turns. Else workers that live for a few jobs would begin with the same
    # queue. None is farther away than that, so none is asked first later than in a round of the weights.
    def __init__(
        self, queues: Sequence[str], weights: Sequence[int], draw: Callable[[], float] = random.random
    ) -> None:
        self._distance = {queue: 1 / weight for queue, weight in zip(queues, weights, strict=True)}
        first = queues[bisect(list(accumulate(weights)), draw() * sum(weights))]
        self._at = {queue: 0.0 if queue == first else draw() * self._distance[queue] for queue in queues}
        self._asked: tuple[str, ...] = ()

    def order(self, queues: Sequence[str]) -> tuple[str, ...]:
        """These queues, in the order in which the next reserve asks them."""
        first = min(queues, key=self._at.__getitem__)
        # The others in the order of the configuration: a store prepares its call once for each order.
        self._asked = (first, *(queue for queue in queues if queue != first))
        return self._asked

    def took(self, leases: Sequence[Lease]) -> None:
        """The reserve that has asked in the last ``order`` has brought these jobs."""
        if not leases:
            return
        last = leases[-1].queue
        self._pass_over(last)
        for lease in leases:
            self._at[lease.queue] += self._distance[lease.queue]

    def _pass_over(self, last: str) -> None:
        """A queue that had nothing, or is paused, keeps no claim: it would shut the others out when it has jobs."""
        not_asked = self._asked[self._asked.index(last) :]
        for queue, at in self._at.items():
            if queue not in not_asked:
                self._at[queue] = max(at, self._at[last])


def turns_of(queues: Sequence[str], weights: Sequence[int]) -> Turns | None:
    """The turns of these queues; ``None`` if they have no weights, and are asked in strict order."""
    return Turns(queues, weights) if weights else None
