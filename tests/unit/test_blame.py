"""What stewards die of is blamed for it, also where the turn in which it began has ended."""

from __future__ import annotations

from contextlib import suppress

import pytest

from queuepool.board import blame as blames
from queuepool.board.blame import Blame, Thread
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


def test_of_several_that_were_at_something_each_is_blamed_less(board):
    """The main thread may have crashed while the other only waited for a silent store."""
    found = []
    for _ in range(4):
        blame = Blame(board.header)
        found.append([blame.is_deadly(what) for what in ("Stage", "Watch")])
        board.header.doing, board.header.doing_aside = "Stage", "Watch"

    assert [[False, False]] * 3 + [[True, True]] == found


def test_what_was_at_something_at_one_death_of_several_is_not_set_aside(board):
    for waiting in ("Watch", "", "Watch"):
        Blame(board.header)
        board.header.doing, board.header.doing_aside = "Stage", waiting
    last = Blame(board.header)

    assert [True, False] == [last.is_deadly(what) for what in ("Stage", "Watch")]


@pytest.mark.parametrize(("culprit", "other"), [(Thread.MAIN, Thread.ALERTS), (Thread.ALERTS, Thread.MAIN)])
def test_who_raises_what_ends_a_steward_is_to_blame_whatever_others_were_at(board, culprit, other):
    for _ in range(2):
        blame = Blame(board.header)
        with suppress(RuntimeError), blame.during("innocent", other), blame.during("guilty", culprit):
            raise RuntimeError
        with suppress(RuntimeError), blame.during("the end", Thread.MAIN):  # the main thread raises it again
            raise RuntimeError
    last = Blame(board.header)

    assert [True, False, False] == [last.is_deadly(what) for what in ("guilty", "innocent", "the end")]


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
