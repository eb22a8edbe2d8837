"""Pools on one queue divide what waits by the notices that they read in their store."""

from __future__ import annotations

import time
from pathlib import Path

from queuepool.board.board import Board, Role, State
from queuepool.board.counts import QueueFacts
from queuepool.board.meters import MeterMemory
from queuepool.config.settings import PoolSettings
from queuepool.events.listeners import Listeners
from queuepool.steward.measure import PoolMeters
from queuepool.steward.neighbours import KnowNeighbours
from queuepool.steward.publish import PoolNotice, Publish
from queuepool.steward.scale import WishForWorkers
from queuepool.stores.factory import Stores
from tests.support.boards import busy, process


class Pool:
    """A pool's board, and its steward's chores: two workers, one of which is busy, and six jobs that wait."""

    def __init__(self, stores: Stores, folder: Path, most: int) -> None:
        folder.mkdir()
        settings = PoolSettings(workers=2, max_workers=most, connection=stores.settings)
        self.board = board = Board.create(folder / f"board.{most}-1", 8)
        board.meters = MeterMemory.new(8, 1)
        board.header.facts = board.header.facts._replace(state=State.RUNNING, target=2)
        board.header.fewest, board.header.most = 1, most
        busy(process(board, 1, Role.WORKER, 1, State.IDLE), "do")
        process(board, 2, Role.WORKER, 2, State.IDLE)
        PoolMeters(board.meters, settings.queues).note(0, QueueFacts(ready=6, measured_at=time.time()))
        notice = PoolNotice(settings, board, folder, {}, stores.queue.now)
        self.publish = Publish(notice, board, stores.control, stores.values)
        self.known = KnowNeighbours(board.name.instance, settings.queues, stores.control.pools, stores.queue.now)
        self.wish = WishForWorkers(settings, board, Listeners(), self.known)

    def why(self) -> str:
        now = time.monotonic()
        self.known.run(now)
        self.wish.run(now)
        return self.board.header.wish_why


def test_each_pool_makes_the_same_of_the_notices_and_has_all_when_the_other_has_left(built, tmp_path):
    large, small = Pool(built, tmp_path / "a", most=8), Pool(built, tmp_path / "b", most=4)
    for pool in (large, small):
        pool.publish.run(time.monotonic())
    together = large.why(), small.why()
    small.publish.withdraw()

    assert ("4 of 6 waiting jobs are its part", "2 of 6 waiting jobs are its part") == together
    assert "6 jobs wait" == large.why()
