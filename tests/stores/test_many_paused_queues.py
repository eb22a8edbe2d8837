"""More paused queues than the board has room for names: what is paused is said once, not every second."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from queuepool.board.board import Board
from queuepool.board.paused_queues import paused_in
from queuepool.board.pauses import Pauses
from queuepool.events import Event, PoolContinued, PoolPaused
from queuepool.steward.side_stores import SideStores
from queuepool.steward.watch_store import WatchControl
from queuepool.stores.factory import Stores


class Heard(list[Event]):
    """A listener that remembers."""

    def emit(self, event: Event) -> None:
        self.append(event)


#: the pool's queues, and how many of the last of them are paused: so many that not even bits fit; names whose letters
#: fit and whose bytes do not; and few
MANY = [
    ([f"queue-{number}" for number in range(10_000)], 300),
    ([f"{number}-{'ü' * 20}" for number in range(100)], 90),
    (["high", "low"], 1),
]


@pytest.mark.by_turns("queues", "count")
@pytest.mark.parametrize(("queues", "count"), MANY)
def test_queues_that_stay_paused_are_news_once(stores: Stores, tmp_path: Path, queues: list[str], count: int):
    board, heard = Board.create(tmp_path / "board", capacity=1), Heard()
    header = board.header
    watch = WatchControl(header, stores.control, heard, queues, SideStores(heard), Pauses(board))
    for queue in queues[-count:]:
        stores.control.pause(queue)
    for _ in range(3):
        watch.run(time.monotonic())

    assert [PoolPaused(tuple(sorted(queues[-count:])))] == heard
    assert 1 == header.control_changes
    assert {*queues[-count:]} <= {*paused_in(header.paused, lambda: queues)}

    for queue in queues[-count:]:
        stores.control.resume(queue)
    watch.run(time.monotonic())
    assert (2, "") == (header.control_changes, header.paused)
    assert isinstance(heard[-1], PoolContinued)
