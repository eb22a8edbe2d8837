"""Boards as a pool has them, without a pool: for what reads them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from queuepool.board.about import About
from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.counts import Histogram, JobCounts, PoolCounts, QueueFacts
from queuepool.board.health import NOT_RUNNING
from queuepool.board.meters import RUN_BOUNDS, WAIT_BOUNDS
from queuepool.board.overview import PoolOverview
from queuepool.board.status import LocalPool, overview
from queuepool.top.reading import Pace, PoolReading

#: what the readings below say is the time
NOW = 1_800_000_000.0
HOUR = 3600.0


def board_with(path: Path, workers: int = 3) -> Board:
    """A running pool that began three days ago."""
    board = Board.create(path / "board.4526-1", 8)
    header = board.header
    header.facts = header.facts._replace(master_pid=4526, state=State.RUNNING, target=workers, done=1_234_000)
    header.generation, header.since = 2, NOW - 72 * HOUR
    steward = process(board, 0, Role.STEWARD, 0, State.RUNNING)
    assert steward.pid == 4530
    for number in range(1, workers + 1):
        process(board, number, Role.WORKER, number, State.IDLE)
    return board


def process(board: Board, index: int, role: Role, number: int, state: State) -> Slot:
    """A process in a slot that was free."""
    board.allocate(board.slots[index])
    slot = board.slots[index]
    slot.begin(role, number, generation=2)
    slot.pid, slot.state, slot.rss = 4530 + index, state, 40 + index
    return slot


def busy(slot: Slot, job: str, *, queue: str = "default", hours: float = 1.0, limit: float = 4.0) -> None:
    """It has run this job for so many hours, and may run it for ``limit`` hours; 0 = without end."""
    slot.job, slot.job_id, slot.queue, slot.attempt = job, f"id-of-{slot.number}", queue, 1
    slot.since = time.time() - hours * HOUR
    slot.deadline = time.monotonic() + (limit - hours) * HOUR if limit else 0.0
    slot.state = State.BUSY


def reading_of(board: Board, counts: PoolCounts | None = None, pace: Pace | None = None, **facts: Any) -> PoolReading:
    """What ``top`` reads on this board."""
    about = About("redis://127.0.0.1:6379/0", "", "", ["high", "default"], "", "", "app")
    local = LocalPool(overview("default", board), "", about)
    return reading_with(PoolReading("default", NOW, local, counts or PoolCounts(), pace or Pace()), **facts)


def reading_with(reading: PoolReading, **facts: Any) -> PoolReading:
    """The same with other facts, named as in the JSON of ``status``."""
    local = reading.local
    assert local
    assert local.about
    of_directory = {name: facts.pop(name) for name in ("store", "queues") if name in facts}
    runs = facts.get("state") != NOT_RUNNING
    seen = PoolOverview.from_json({**local.overview.to_json(), **facts})
    return replace(reading, runs=runs, local=LocalPool(seen, "", replace(local.about, **of_directory)))


def times(bounds: tuple[float, ...], *, each: float, number: int) -> Histogram:
    """So many durations of ``each`` seconds."""
    counts = [0] * (len(bounds) + 1)
    counts[sum(bound < each for bound in bounds)] = number
    return Histogram(tuple(counts), each * number)


def some_counts() -> PoolCounts:
    """Two queues, and two names of jobs."""
    mail = JobCounts(done=5000, failed=3, timeout=2, run=times(RUN_BOUNDS, each=0.2, number=5003))
    mail = mail._replace(wait=times(WAIT_BOUNDS, each=4.0, number=5000))
    resize = JobCounts(done=20, released=1, run=times(RUN_BOUNDS, each=90.0, number=21))
    queues = {
        "high": QueueFacts(measured_at=NOW - 2),
        "default": QueueFacts(1234, 5, 2, 1, oldest=65.0, measured_at=NOW - 2, paused=True),
        "imports": QueueFacts(10_000, 0, 0, oldest=4000.0, overdue=61.0, measured_at=NOW - 2, is_at_least=True),
    }
    return PoolCounts({("default", "app.mail"): mail, ("high", "app.resize"): resize}, queues=queues, failed_jobs=17)
