"""The steward's chore that wishes for workers: what it makes of the board and the meters, and when it says nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.board import Board, Role, State
from queuepool.board.counts import QueueFacts
from queuepool.board.meters import MeterMemory
from queuepool.config.settings import PoolSettings
from queuepool.events import PoolScaled
from queuepool.events.listeners import Listeners
from queuepool.steward.measure import PoolMeters
from queuepool.steward.neighbours import KnowNeighbours
from queuepool.steward.scale import WishForWorkers
from tests.support.boards import busy, process
from tests.support.each import each

SETTINGS = PoolSettings(workers=2, max_workers=8, queues=("high", "low"))


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """Of a pool with two workers, the first of which runs a job of the queue ``high``."""
    board = Board.create(tmp_path / "board.1-1", 8)
    board.meters = MeterMemory.new(8, 2)
    board.header.facts = board.header.facts._replace(state=State.RUNNING, target=2)
    board.header.fewest, board.header.most = 2, 8
    for number in (1, 2):
        slot = process(board, number, Role.WORKER, number, State.IDLE)
        if number == 1:
            busy(slot, "do", queue="high")
    return board


def measured(board: Board, ready: int, *, queue: int = 0, ago: float = 0.0) -> None:
    assert board.meters
    PoolMeters(board.meters, SETTINGS.queues).note(queue, QueueFacts(ready=ready, measured_at=time.time() - ago))


def wishing(
    board: Board, settings: PoolSettings = SETTINGS, listeners: Listeners | None = None, notices: Any = ()
) -> WishForWorkers:
    """The chore, beside the pools that have published these notices."""
    known = KnowNeighbours(board.name.instance, settings.queues, lambda: notices, lambda: 0.0)
    known.run(1000.0)
    return WishForWorkers(settings, board, listeners or Listeners(), known)


def wish(board: Board) -> tuple[int, str]:
    wishing(board).run(1000.0)
    return board.header.wish, board.header.wish_why


def test_nothing_is_wished_for_before_the_queues_are_measured_or_when_that_was_long_ago(board):
    assert (0, "") == wish(board)
    measured(board, 9, ago=60.0)

    assert (0, "", 0.0) == (*wish(board), board.header.wish_at)


def test_jobs_that_wait_call_for_workers(board):
    measured(board, 9)

    # One is busy, and of a kind that nobody has seen end, two may try the others.
    assert ((3, "9 jobs wait"), 1000.0) == (wish(board), board.header.wish_at)


@each(("queues", "why"), [(["high"], "13 of 15 waiting jobs are its part"), (["mail"], "15 jobs wait")])
def test_of_each_queue_that_others_serve_too_it_wishes_for_its_part(board, queues, why):
    processes = [{"role": "worker", "number": 1, "state": "idle"}]
    other = {"host": "b", "pool": "p", "id": "b", "state": "running", "workers": 4, "processes": processes, "at": 0.0}
    measured(board, 6)
    measured(board, 9, queue=1)
    wishing(board, notices=[{**other, "queues": queues}]).run(1000.0)

    assert why == board.header.wish_why  # of six jobs four: it may have eight workers, the other has four


def test_what_is_needed_is_told_whatever_the_bounds(board):
    board.header.fewest, board.header.most = 1, 2
    measured(board, 9)
    wish(board)

    assert (2, 3, 0) == (board.header.wish, board.header.needed, board.header.lately)  # nothing is known of before


def test_what_was_needed_of_late_is_told_once_it_is_known(board):
    chore = wishing(board, replace(SETTINGS, scale_down_after=5.0))
    for now in range(8):
        measured(board, 9 if now < 4 else 0)
        chore.run(1000.0 + now)

    assert (1, 3) == (board.header.needed, board.header.lately)


def test_a_paused_queue_calls_for_none(board):
    measured(board, 9)
    board.header.paused = "high"

    assert (2, "fewer may not be enough") == wish(board)


@pytest.mark.parametrize("how", ["signal", "maintenance", "listener"])
def test_a_pool_that_is_paused_stays_as_it_is(board, how):
    measured(board, 9)
    if how == "signal":
        board.header.state = State.PAUSED
    elif how == "maintenance":
        board.header.down = 1
    else:
        board.slots[1].state = board.slots[2].state = State.PAUSED

    assert ((2, "paused"), 0) == (wish(board), board.header.needed)


def test_listeners_are_told_of_each_change_once(board):
    told, listeners = [], Listeners()
    listeners.add(PoolScaled, told.append)
    chore = wishing(board, listeners=listeners)
    measured(board, 9)
    chore.run(1000.0)
    for target in (3, 3, 5):
        board.header.target = target
        chore.run(1001.0)

    assert [(2, 3), (3, 5)] == [(one.before, one.after) for one in told]
    assert "9 jobs wait" == told[0].why


def test_nonsense_on_the_board_leads_to_some_wish(board):
    measured(board, 9)
    header = board.header
    header.fewest, header.most, header.target, board.slots[1].state = -7, 2**60, -1, 99

    assert 1 <= wish(board)[0]
    assert 0 <= board.header.needed <= 10**6
