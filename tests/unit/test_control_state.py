"""What a worker knows of pauses and maintenance is whole, although its jobs ask in threads of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from queuepool.board.board import Board
from queuepool.board.fields import Header
from queuepool.worker.context import BoardControlState

QUEUES = ("mails", "reports")


class ReadAtTheSameTime:
    """A header. ``meanwhile`` is what another thread does once, just before somebody reads whether it is ``down``."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.meanwhile: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "down" and self.meanwhile:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return getattr(self._header, name)


def test_a_job_that_looks_at_the_same_time_hides_no_change_from_its_worker(tmp_path):
    board = Board.create(tmp_path / "board.1-1", capacity=1)
    header = ReadAtTheSameTime(board.header)
    state: Any = BoardControlState(header, 1, QUEUES)  # type: ignore[arg-type]
    state.refresh()
    seen = []

    def the_workers_round() -> None:
        state.refresh()
        seen.append((state.is_down(), state.paused()))

    board.header.down, board.header.paused = 1, "reports"
    board.header.note_control_change()
    header.meanwhile = the_workers_round
    state.glance()
    the_workers_round()

    assert [(True, {"reports"})] * 2 == seen
