"""Move failures from the outbox beside the jobs to the failed store, if that is on another server."""

from __future__ import annotations

from queuepool.board.board import Board
from queuepool.steward.side_stores import PERIOD, FailureRecorder

#: seconds between checks of the board
_TICK = 0.05


class RecordFailures:
    """Runs at once when the board shows another failed job, and once a second for those of other hosts."""

    def __init__(self, board: Board, recorder: FailureRecorder) -> None:
        self._board = board
        self._recorder = recorder
        self._last_failed = -1
        self._next_run = 0.0

    def run(self, now: float) -> float:
        failed = self._board.totals()[1]
        if failed != self._last_failed or now >= self._next_run:
            self._last_failed, self._next_run = failed, now + PERIOD
            self._board.header.unrecorded = self._recorder.record()
        return _TICK
