"""One look at a local pool: what its board says at one moment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from queuepool.board.board import Board
from queuepool.board.board_name import BoardName
from queuepool.board.counts import PoolCounts, counts_of
from queuepool.board.facts import Totals
from queuepool.board.health import NOT_RUNNING
from queuepool.board.local_pool import board_of, facts_of
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.shared_file import SharedFile
from queuepool.errors import ConfigError, NotRunning
from queuepool.top.pace import Meter, Pace


@dataclass(frozen=True, slots=True)
class Reading:
    """``facts`` are those of ``status``; ``problem`` is why the pool could not be read, and ``facts`` are old then.

    ``seen_at``: when the facts were read, in Unix seconds; 0.0 = never.
    """

    pool: str
    seen_at: float
    facts: Mapping[str, Any]
    counts: PoolCounts
    pace: Pace
    problem: str = ""


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
            return self._failed(before, NOT_RUNNING, str(error))
        except (ConfigError, OSError) as error:
            if before is None:
                raise
            return self._failed(before, before.facts["state"], str(error))

    def _failed(self, before: Reading | None, state: str, problem: str) -> Reading:
        last = before or Reading(self.name, 0.0, {}, PoolCounts(), Pace())
        return replace(last, facts={**last.facts, "state": state}, pace=Pace(), problem=problem)

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
        facts, counts = facts_of(self.name, self._runtime, board), counts_of(board)
        totals = Totals(facts["done"], facts["failed"], facts["released"])
        pace = self._meter.pace(time.monotonic(), totals, counts)
        return Reading(self.name, time.time(), facts, counts, pace)
