"""What a running pool's meters say, read from beside its board as any process would."""

from __future__ import annotations

from pathlib import Path

from queuepool.board.board import Board
from queuepool.board.counts import JobCounts, PoolCounts, counts_of


def boards_in(runtime: Path) -> list[Path]:
    """The boards of all pools below this directory."""
    return [path for path in runtime.glob("*/board.*") if path.name.count(".") == 1]


def board_in(runtime: Path, *, write: bool = False) -> Board:
    """The board of the only pool below this directory."""
    (path,) = boards_in(runtime)
    return Board.open(path, write=write)


def counts_in(runtime: Path) -> PoolCounts:
    """The counts of the only pool below this directory."""
    return counts_of(board_in(runtime))


def of_job(counts: PoolCounts, name: str = "do", queue: str = "default") -> JobCounts:
    """The counts of one job; zeros if there are none yet."""
    return counts.jobs.get((queue, name), JobCounts())
