"""What a pool writes into the history, and as whom."""

from __future__ import annotations

from queuepool.history.rollup import KeepHistory
from tests.support.boards import board_with


def test_a_pool_that_starts_again_within_a_second_replaces_nothing(stores, tmp_path):
    board = board_with(tmp_path)
    for began in (1000.1, 1000.4):
        board.header.since = began
        KeepHistory("p", board, stores.values, lambda: 1019.0, 3600.0).write()

    assert 2 == len(stores.values.history("1m", range(960, 1020, 60)).texts)
