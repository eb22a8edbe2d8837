"""One look at a local pool: what its board says at one moment."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from queuepool.board import meters
from queuepool.board.board import Board
from queuepool.board.board_name import BoardName
from queuepool.board.counts import PoolCounts
from queuepool.board.facts import Totals
from queuepool.board.health import NOT_RUNNING, Health, health_of, health_of_none
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.shared_file import SharedFile
from queuepool.board.status import LocalPool, board_of, local_pool
from queuepool.errors import ConfigError, NotRunning
from queuepool.top.pace import Meter, Pace


@dataclass(frozen=True, slots=True)
class Reading:
    """``local`` is what was seen last; ``None``: nothing yet, as the pool does not run.

    ``seen_at``: when that was, in Unix seconds; 0.0 = never.
    """

    pool: str
    seen_at: float
    local: LocalPool | None
    counts: PoolCounts
    pace: Pace
    #: why the pool could not be read; what was seen is old then
    problem: str = ""
    runs: bool = True

    @property
    def running(self) -> LocalPool | None:
        """The pool, if it runs as far as is known."""
        return self.local if self.runs else None

    @property
    def state(self) -> str:
        return self.running.overview.state if self.running else NOT_RUNNING

    @property
    def health(self) -> Health:
        return health_of(self.running.overview) if self.running else health_of_none()


class Reader:
    """Reads one pool again and again; the one that has its name next is another pool."""

    def __init__(self, runtime: RuntimeDir) -> None:
        self.name = runtime.name
        self._runtime = runtime
        self._meter = Meter()
        self._master = BoardName(0, 0)

    def next(self, before: Reading | None) -> Reading:
        """A reading; where the pool cannot be read, the last facts with the problem.

        Raises ``ConfigError`` and ``OSError`` if there is none before.
        """
        try:
            return self._look()
        except NotRunning as error:
            last = before or Reading(self.name, 0.0, None, PoolCounts(), Pace())
            return replace(last, runs=False, pace=Pace(), problem=str(error))
        except (ConfigError, OSError) as error:
            if before is None:
                raise
            return replace(before, pace=Pace(), problem=str(error))

    def _look(self) -> Reading:
        board = board_of(self._runtime)
        try:
            return self._read(board)
        finally:
            if isinstance(board.memory, SharedFile):
                board.memory.close()  # else there would be two more open files each second

    def _read(self, board: Board) -> Reading:
        if board.name != self._master:
            self._master, self._meter = board.name, Meter()
        local, counts = local_pool(self.name, self._runtime, board), meters.read(board)
        totals = Totals(local.overview.done, local.overview.failed, local.overview.released)
        pace = self._meter.pace(time.monotonic(), totals, counts)
        return Reading(self.name, time.time(), local, counts, pace)
