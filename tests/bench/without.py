"""``queuepool`` without some of its safety: ``python -m tests.bench.without hand start …`` shows what that costs.

``hand``: nobody could settle what a dead worker held. ``leases``: what it held is lost. ``watch``: besides, nobody
could end a job at its deadline, nor see which one runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from queuepool import board, roles
from queuepool.cli import main
from queuepool.desk import Desk
from queuepool.hand import Hand
from queuepool.stores.base import Lease, Reservation
from queuepool.stores.redis import queue as redis_queue


class BlankHand(Hand):
    """Holds nothing."""

    def hold(self, *_: Any) -> None:
        pass

    def mark(self, *_: Any) -> None:
        pass

    def drop(self) -> None:
        pass


class HandlessDesk(Desk):
    """Writes down no receipt and its stage, and gives nothing back."""

    def asking(self) -> float:
        return time.monotonic()

    def holds(self, *_: Any) -> None:
        pass

    def turns_to(self, *_: Any) -> bool:
        return True

    def settled_one(self, *_: Any) -> None:
        pass

    def settled(self) -> None:
        pass


class BlankDesk(HandlessDesk):
    """Nor writes down which job runs; it arms no alarm, shows no title. Rounds still have their deadline."""

    def begins(self, *_: Any, **__: Any) -> None:
        pass

    def arm(self, *_: Any) -> None:
        pass

    def succeeded(self) -> None:
        pass

    def ended(self) -> None:
        pass

    def is_intact(self) -> bool:
        return True

    def is_open(self) -> bool:
        return True


class PoppingQueue(redis_queue.RedisQueue):
    """Takes jobs off their list, and forgets them; it counts no attempts, stages nothing, looks at nothing."""

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        return self.reserve_ahead(queues, tag, limit)()

    def reserve_ahead(
        self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()
    ) -> Callable[[], Reservation]:
        (queue,) = queues
        answer = self.client._line.send("LPOP", self.keys.ready(queue), limit)
        return lambda: Reservation(leases=[Lease(queue, raw) for raw in answer.get() or ()])

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return [True for _ in leases]


def unknown() -> list[str]:
    """What is left out here and is no longer there to be left out."""
    pairs = ((BlankHand, Hand), (HandlessDesk, Desk), (BlankDesk, Desk), (PoppingQueue, redis_queue.RedisQueue))
    return [name for ours, real in pairs for name in vars(ours) if not hasattr(real, name)]


if __name__ == "__main__":
    less = sys.argv.pop(1)
    board.Hand = BlankHand  # type: ignore[misc]
    roles.Desk = BlankDesk if less == "watch" else HandlessDesk  # type: ignore[misc]
    if less != "hand":
        redis_queue.RedisQueue = PoppingQueue  # type: ignore[misc]
    main()
