"""What stewards die of is blamed for it, also where the turn in which it began has ended."""

from __future__ import annotations

import pytest

from queuepool.board import blame as blames
from queuepool.board.blame import Blame
from queuepool.board.board import Board


@pytest.fixture
def board(tmp_path) -> Board:
    return Board.create(tmp_path / "board", capacity=1)


def live(board: Board) -> Blame:
    """A steward finds the record, and one turn of its chore ends normally."""
    blame = Blame(board.header)
    with blame.during("Alerts"):
        pass
    return blame


def die(board: Board, *, killed: bool = False) -> None:
    """In a later turn."""
    board.header.doing, board.header.steward_killed = "Alerts", int(killed)


def test_a_chore_that_goes_on_in_a_thread_is_set_aside_after_two_deaths(board):
    for _ in range(2):
        live(board)
        die(board)

    assert live(board).is_deadly("Alerts")


def test_deaths_from_outside_are_forgotten_once_the_chore_has_run(board):
    for _ in range(9):
        live(board)
        die(board, killed=True)

    assert not live(board).is_deadly("Alerts")


def test_after_a_while_a_normal_turn_clears_the_blame(board, monkeypatch):
    live(board)
    die(board)
    monkeypatch.setattr(blames, "_PROOF", 0.0)
    live(board)
    die(board)

    assert not live(board).is_deadly("Alerts")
