"""``queuepool`` without some of its safety: ``python -m tests.bench.without hand start …`` shows what that costs.

``hand``: nobody could settle what a dead worker held. ``watch``: nor end a job at its deadline, nor see which one runs.
``leases``: besides, what a dead worker held is lost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
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

    reserve_ahead = None  # type: ignore[assignment]

    def reserve(self, queues: Sequence[str], tag: int, limit: int, done: Sequence[Lease] = ()) -> Reservation:
        for queue in queues:
            if taken := self.client.command("LPOP", self.keys.ready(queue), limit):
                return Reservation(leases=[Lease(queue, raw) for raw in taken])
        return Reservation()

    def delete(self, leases: Sequence[Lease]) -> list[bool]:
        return [True for _ in leases]


def unknown() -> list[str]:
    """What is left out here and is no longer there to be left out."""
    pairs = ((BlankHand, Hand), (HandlessDesk, Desk), (BlankDesk, Desk), (PoppingQueue, redis_queue.RedisQueue))
    return [name for ours, real in pairs for name in vars(ours) if not hasattr(real, name)]


if __name__ == "__main__":
    less = sys.argv.pop(1)
    board.Hand = BlankHand  # type: ignore[misc]
    roles.Desk = HandlessDesk if less == "hand" else BlankDesk  # type: ignore[misc]
    if less == "leases":
        redis_queue.RedisQueue = PoppingQueue  # type: ignore[misc]
    main()
