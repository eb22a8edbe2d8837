"""What the master makes of orders and wishes: never more than is allowed, whatever stands on the board."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.board.board import Board, Role, State
from queuepool.board.requests import Between, Pin, Requests, Unpin, order_in, word_of
from queuepool.board.states import Hold
from queuepool.board.status import overview
from queuepool.config.settings import PoolSettings
from queuepool.config.values import MemoryReserve
from queuepool.master.children import Child, Children
from queuepool.master.pool_size import PoolSize
from queuepool.master.respawn import Respawn
from tests.support.each import each

NOW = 1000.0
SCALES = PoolSettings(workers=4, min_workers=2, max_workers=8, memory_reserve=MemoryReserve(0.0))
Made = Callable[[PoolSettings], PoolSize]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / "board", capacity=64)


@pytest.fixture
def respawn() -> Respawn:
    return Respawn()


@pytest.fixture
def made(board: Board, respawn: Respawn) -> Made:
    return lambda settings: PoolSize(settings, board, Children(lambda _: True), respawn)


def wish(board: Board, workers: int, at: float = NOW) -> None:
    board.header.wish, board.header.wish_at, board.header.wish_why = workers, at, "12 jobs wait"


# Orders


@each("order", [Pin(0), Pin(1024), Pin(7, 3600), Pin(0, 2**32 - 1), Unpin(), Between(1, 1024), Between(2, 16)])
def test_an_order_is_one_word_of_the_board(order):
    assert order == order_in(word_of(order))
    assert 0 < word_of(order) < 2**63


def test_a_plain_number_is_the_word_that_older_versions_write():
    assert (5, Pin(4)) == (word_of(Pin(4)), order_in(5))


@each("word", [0, -1, -(2**63), 2**63 - 1, 3 << 56, 1 << 24])
def test_a_word_that_no_order_has_means_none(word):
    assert order_in(word) is None


def test_an_order_is_taken_once(board):
    requests = Requests(board.header)
    board.header.scale = word_of(Pin(3))

    assert [Pin(3), None] == [requests.order(), requests.order()]


@each("order", [Pin(32), Pin(4000), Between(0, 4), Between(5, 4), Between(2, 32)])
def test_an_impossible_order_changes_nothing(made, order):
    size = made(SCALES)
    size.obey(order, NOW)
    size.follow(NOW)

    assert 4 == size.target


def test_a_pool_that_does_not_scale_has_its_workers_until_it_is_ordered_otherwise(made, board):
    size = made(PoolSettings())
    wish(board, 9)
    size.follow(NOW)
    assert 4 == size.target
    size.obey(Between(2, 9), NOW)
    assert 4 == size.target
    size.obey(Pin(6), NOW)
    size.follow(NOW + 1e6)
    size.show()

    assert (6, None) == (size.target, overview("default", board).scaling)
    size.obey(Unpin(), NOW)
    assert 4 == size.target


def test_an_order_for_a_time_ends_by_itself(made, caplog):
    size = made(PoolSettings())
    with caplog.at_level("INFO", "queuepool"):
        size.obey(Pin(9, 60), NOW)
        size.follow(NOW + 59.0)
        before = size.target
        size.follow(NOW + 60.0)

    assert (9, 4) == (before, size.target)
    assert ["scaled from 4 to 9 workers: by order", "scaled from 9 to 4 workers: the time of the order is over"] == (
        caplog.messages
    )


def test_one_more_or_fewer_is_an_order(made, board):
    size = made(SCALES)
    size.add(1, NOW)
    wish(board, 8)
    size.follow(NOW)
    assert 5 == size.target
    for _ in range(9):
        size.add(-1, NOW)

    assert 0 == size.target


# Wishes


@each(("wished", "target"), [(6, 6), (1, 2), (9, 8), (2**60, 4), (-5, 4), (0, 4)])
def test_a_wish_leads_nowhere_beyond_the_bounds(made, board, wished, target):
    size = made(SCALES)
    wish(board, wished)
    size.follow(NOW)

    assert target == size.target


@each("at", [NOW - 31.0, NOW + 5.0, 0.0, float("nan"), float("inf")])
def test_a_wish_that_is_old_or_of_no_time_is_none(made, board, at):
    size = made(SCALES)
    wish(board, 6, at)
    size.follow(NOW)
    size.show()

    assert (4, Hold.SILENCE) == (size.target, board.header.held)


def test_an_order_comes_before_a_wish_and_bounds_hand_it_back(made, board):
    size = made(SCALES)
    size.obey(Pin(1), NOW)
    wish(board, 6)
    size.follow(NOW)
    assert 1 == size.target
    size.obey(Between(3, 5), NOW)
    size.follow(NOW)

    assert 5 == size.target
    size.obey(Between(2, 31), NOW)
    wish(board, 30)
    size.follow(NOW)
    assert 30 == size.target


def test_while_workers_cannot_boot_there_are_no_more_of_them_but_fewer(made, board, respawn):
    size = made(SCALES)
    failed = Child(100, board.slots[0], Role.WORKER, 1, generation=1, forked_at=NOW)
    failed.status = 3 << 8
    respawn.died(failed, NOW)
    wish(board, 6)
    size.follow(NOW)
    size.show()
    assert (4, Hold.BOOT) == (size.target, board.header.held)
    wish(board, 3)
    size.follow(NOW)

    assert 3 == size.target


def test_where_memory_is_short_there_are_no_more_workers_but_none_is_taken_away(made, board):
    size = made(replace(SCALES, memory_reserve=MemoryReserve(1e9)))
    wish(board, 6)
    size.follow(NOW)
    size.show()

    assert (4, Hold.MEMORY) == (size.target, board.header.held)


# What is shown


def test_status_says_what_the_number_of_workers_follows(made, board):
    size = made(SCALES)
    wish(board, 6, time.monotonic())
    size.follow(time.monotonic())
    size.show()
    assert "auto between 2 and 8, wish 6: 12 jobs wait" == overview("default", board).scaling.words
    size.obey(Pin(3, 3600), time.monotonic())
    size.show()
    pinned = overview("default", board).scaling

    assert (True, "by order") == (pinned.pinned, pinned.why)
    assert pinned.words.startswith("pinned until 2")


def test_what_a_job_has_written_over_the_bounds_is_mended(made, board):
    size = made(SCALES)
    size.show()
    board.header.fewest, board.header.most, board.header.pinned = 0, 10**9, 1
    size.show()

    assert (2, 8, 0) == (board.header.fewest, board.header.most, board.header.pinned)


def test_a_worker_that_was_told_to_leave_stands_in_nobodys_way(board):
    """It may take an hour for its last job; its number has another worker as soon as that is wanted."""
    children = Children(lambda _: True)
    slot = board.slots[0]
    slot.state = State.BUSY
    children.add(child := Child(100, slot, Role.WORKER, 1, generation=1, forked_at=NOW))
    assert [] == children.plan(1, 1).spawn
    child.stop_sent = True

    assert [1] == children.plan(1, 1).spawn
