"""A job may write anything to the board: the pages stay well formed."""

from __future__ import annotations

import json
import random
from http import HTTPStatus
from pathlib import Path

import pytest

from queuepool.board.board import Board, Role, State
from queuepool.metrics.samples import METRICS
from queuepool.metrics.server import Pages
from tests.metrics.test_exposition import parsed
from tests.support.each import each

PATHS = ("/metrics", "/livez", "/readyz", "/startedz", "/api/v1/status")


def overwritten(board: Board, fill) -> None:
    """All but the first two numbers, by which a board is known."""
    size = len(board.memory)
    board.memory[16:size] = fill(size - 16)
    for slot in board.slots[:2]:
        slot.role, slot.pid, slot.dead = Role.WORKER, 1, 0


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / "board.1-1", capacity=4)


@pytest.mark.bad_input("B142")
@each("seed", range(20))
def test_random_bytes_on_the_board_break_no_page(board, seed):
    overwritten(board, random.Random(seed).randbytes)
    pages = Pages("p", "c", board)
    found = {path: pages.answer(path) for path in PATHS}

    assert HTTPStatus.OK == found["/metrics"].status == found["/api/v1/status"].status
    assert set(parsed(found["/metrics"].body)) <= {*METRICS, "queuepool_up"}
    assert "p" == json.loads(found["/api/v1/status"].body)["pool"]


@pytest.mark.bad_input("B142")
@each("byte", [0x00, 0x7F, 0xFF])
def test_the_same_byte_everywhere_breaks_none_either(board, byte):
    overwritten(board, lambda size: bytes([byte]) * size)
    pages = Pages("p", "c", board)

    assert [HTTPStatus.OK] * 2 == [pages.answer(path).status for path in ("/metrics", "/api/v1/status")]


@pytest.mark.bad_input("B142")
def test_alerts_that_no_steward_wrote_break_none(board):
    alert = ["wait", "\ud800", 1.0, 1.0, 1.0, False, False, 0.0]
    board.path.with_name(f"{board.path.name}.alerts").write_text(json.dumps([alert, alert]))
    text = Pages("p", "c", board).answer("/metrics").body

    assert [1.0] == list(parsed(text)["queuepool_alert"].values())


def test_an_empty_board_says_that_nothing_has_started(board):
    pages = Pages("p", "c", board)

    assert [HTTPStatus.SERVICE_UNAVAILABLE] * 3 == [
        pages.answer(f"/{one}").status for one in ("livez", "readyz", "startedz")
    ]
    assert State.STARTING == board.header.state
