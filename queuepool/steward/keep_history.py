"""The chore that keeps the pool's counters in the store at the end of each minute, for ``queuepool history``."""

from __future__ import annotations

import socket
from collections.abc import Callable

from queuepool.board.board import Board
from queuepool.board.counts import counts_of
from queuepool.metrics.rollup import GRAINS, rollup_of
from queuepool.stores.values import MAX_KEPT, Values

#: seconds, and minutes
_MINUTE, _HOUR = 60.0, 60
#: seconds after the end of a minute at which it is written
_AFTER = 0.5


class KeepHistory:
    """``clock`` is the store's; nothing is kept for longer than ``lasts`` seconds."""

    def __init__(self, pool: str, board: Board, values: Values, clock: Callable[[], float], lasts: float) -> None:
        self._pool = pool
        self._board = board
        self._values = values
        self._clock = clock
        self._lasts = lasts
        self._minute = 0

    def run(self, now: float) -> float:
        at = self._clock()
        minute = int((at - _AFTER) // _MINUTE)
        if self._minute and minute > self._minute:
            self.write(at - 1.0)  # to the buckets that have just ended
            if minute % _HOUR == 0:
                self._values.sweep_history()
        self._minute = minute
        return _MINUTE - (at - _AFTER) % _MINUTE

    def write(self, at: float | None = None) -> None:
        """Write the counters as they are to the buckets of this time, by default now."""
        at = self._clock() if at is None else at
        since = self._board.header.since
        text = rollup_of(since, counts_of(self._board)).fitting(MAX_KEPT)
        # A pool that starts again counts from 0, so it is another writer, also within the same second.
        writer = f"{socket.gethostname()[:64]}:{self._pool}:{since:.3f}"
        for grain in GRAINS:
            bucket = int(at // grain.seconds) * grain.seconds
            self._values.keep_history(grain.name, bucket, writer, text, min(grain.kept, self._lasts) + grain.seconds)
