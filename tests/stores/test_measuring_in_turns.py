"""The steward measures many queues in turns, so that its other chores need not wait for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.board.meters import MeterMemory
from queuepool.errors import StoreError
from queuepool.steward.measure import Measure, PoolMeters
from queuepool.stores.factory import Stores
from tests.support.redis_server import PREFIX

QUEUES = ["a", "b", "c"]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    board = Board.create(tmp_path / "board.1-1", 1)
    board.meters = MeterMemory.new(1, len(QUEUES))
    return board


def measured(board: Board) -> list[str]:
    return [name for name, facts in counts_of(board).queues.items() if facts.measured_at]


def chore_of(board: Board, stores: Stores, turn: float) -> Measure:
    assert board.meters is not None
    return Measure(PoolMeters(board.meters, QUEUES), stores.queue, lambda: 7, turn)


def test_few_queues_are_one_turn(board: Board, stores: Stores) -> None:
    pause = chore_of(board, stores, turn=3600.0).run(0.0)

    assert (QUEUES, 7) == (measured(board), counts_of(board).failed_jobs)
    assert pause >= 5.0


def test_a_turn_ends_when_its_time_is_over_and_the_next_goes_on(board: Board, stores: Stores) -> None:
    chore, seen = chore_of(board, stores, turn=0.0), []
    for _ in QUEUES:
        pause = chore.run(0.0)
        seen.append((measured(board), counts_of(board).failed_jobs, pause >= 5.0))

    assert [(["a"], 0, False), (["a", "b"], 0, False), (QUEUES, 7, True)] == seen


def test_a_queue_that_is_refused_holds_up_no_other(board: Board, stores: Stores, server: redis.Redis) -> None:
    server.set(f"{PREFIX}queues:b", "no list")
    chore = chore_of(board, stores, turn=0.0)
    chore.run(0.0)
    with pytest.raises(StoreError, match="queue=b: "):
        chore.run(0.0)
    chore.run(0.0)

    assert ["a", "c"] == measured(board)
