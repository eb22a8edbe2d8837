"""Why a pool has neither more workers now nor fewer, as ``status`` says it, from what stands on its board."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from queuepool.board.board import Board, State
from queuepool.board.overview import PoolOverview, ScalingRow
from queuepool.board.scaling import HELD
from queuepool.board.states import Hold
from queuepool.board.status import overview
from tests.support.each import each


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """Of a pool with six workers between two and eight, whose jobs need six."""
    board = Board.create(tmp_path / "board.1-1", 8)
    board.header.facts = board.header.facts._replace(state=State.RUNNING)
    return board


def scaling(board: Board, **facts: Any) -> ScalingRow:
    known = {
        "target": 6, "fewest": 2, "most": 8, "needed": 6, "lately": 6, "wish": 6, "wish_at": time.monotonic(),
        "wish_why": "enough", "pinned": 0, "pinned_until": 0.0, "held": Hold.NOT, "down": 0,
    }  # fmt: skip
    for name, value in {**known, **facts}.items():
        setattr(board.header, name, value)
    found = overview("p", board).scaling
    assert found
    return found


@each(
    ("facts", "held", "not_more", "not_fewer"),
    [
        ({}, None, "6 are enough", "6 are needed"),
        ({"target": 2, "needed": 1}, None, "1 is enough", "min_workers"),
        ({"needed": 3, "lately": 7}, None, "3 are enough", "7 were needed within scale_down_after"),
        (
            {"needed": 3, "lately": 5},
            None,
            "3 are enough",
            "5 were needed within scale_down_after, which is hardly less",
        ),
        ({"needed": 3, "lately": 0}, None, "3 are enough", "what was needed before is not known yet"),
        ({"needed": 7, "wish": 7}, None, "7 are needed, and come in steps", "7 are needed"),
        ({"needed": 40, "wish": 8}, None, "40 are needed, and come in steps", "40 are needed"),
        ({"needed": 7}, None, "7 are needed, but more would find no jobs at this moment", "7 are needed"),
        ({"target": 8, "needed": 40}, "max_workers", "max_workers, where 40 are needed", "40 are needed"),
        ({"needed": 7, "held": Hold.MEMORY}, "memory", "memory_reserve would not be left", "7 are needed"),
        ({"needed": 7, "held": Hold.BOOT}, "boot", "workers fail to boot", "7 are needed"),
        ({"wish_why": "paused", "needed": 0}, None, "no worker may take jobs", "no worker may take jobs"),
        ({"down": 1, "needed": 0, "target": 2}, None, "no worker may take jobs", "min_workers"),
    ],
)
def test_why_there_are_neither_more_nor_fewer(board, facts, held, not_more, not_fewer):
    found = scaling(board, **facts)

    assert (held, not_more, not_fewer) == (found.held, found.not_more, found.not_fewer)
    assert f"not more: {not_more}; not fewer: {not_fewer}" == found.reasons or not_more == not_fewer


@each(
    ("facts", "held", "words"),
    [
        ({"pinned": 1}, "order", "the number is ordered, until queuepool scale auto or the end of its time"),
        ({"pinned": 1, "most": 0, "fewest": 0, "pinned_until": 1e9}, "order", "the number is ordered, until "),
        ({"held": Hold.SILENCE}, "silence", "it is not known what waits"),
        ({"wish_at": 0.0, "held": Hold.SILENCE}, "silence", "it is not known what waits"),
    ],
)
def test_what_holds_for_both_is_said_once(board, facts, held, words):
    found = scaling(board, **facts)

    assert found.reasons.startswith(f"neither more nor fewer: {words}")
    assert held == found.held
    assert held in HELD


def test_the_reason_of_every_hold_is_one_that_metrics_show():
    assert {one.name.lower() for one in Hold if one} < set(HELD)


def test_a_notice_of_an_older_version_gives_no_reasons():
    facts = {"state": "running", "workers": 3, "processes": [], "scaling": {"fewest": 1, "most": 4, "why": "enough"}}
    found = PoolOverview.from_json(facts).scaling

    assert found
    assert ("", None, None) == (found.reasons, found.held, found.needed)


@pytest.mark.bad_input("B142")
@each("number", [-1, 2**62, -(2**63)])
def test_nonsense_on_the_board_leads_to_some_reason(board, number):
    nonsense = dict.fromkeys(("needed", "lately", "target", "fewest", "held"), number)

    assert scaling(board, **nonsense).not_more
    assert scaling(board, **nonsense).not_fewer
