"""The steward writes the states of the jobs that run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from queuepool.board.blame import Blame
from queuepool.board.board import Board, BoardName, Role, Slot, State
from queuepool.board.held_jobs import Stage
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.settings import PoolSettings
from queuepool.settlement.states import States
from queuepool.steward.orphaned_boards import OrphanedBoards
from queuepool.steward.publish import ReportRunning
from tests.support.samples import new_jobs, payload


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / str(BoardName.own()), capacity=1)


@pytest.fixture
def report(board: Board, stores, tmp_path: Path) -> ReportRunning:
    runtime = RuntimeDir(PoolSettings(runtime_dir=tmp_path / "gone"))
    boards = OrphanedBoards(board, runtime, Blame(board.header))
    return ReportRunning(boards, stores.queue, stores.values, States())


@pytest.fixture
def slot(board: Board, stores) -> Slot:
    """Of a worker that runs the second of two jobs, and was refused the settlement of the first."""
    stores.queue.push("default", new_jobs(payload("a"), payload("b")))
    slot = board.slots[0]
    slot.begin(Role.WORKER, 3, 1)
    slot.hold(stores.queue.reserve(["default"], 7, 2).leases)
    for number in (0, 1):
        slot.hand.mark(number, Stage.RUNNING)
    slot.current_index, slot.job_id, slot.attempt, slot.since, slot.track = 1, "b", 1, 1000.0, 60.0
    slot.progress, slot.note, slot.state = 0.5, "half", State.BUSY
    return slot


def said(stores, job_id: str) -> tuple[str, float, float, str, int] | None:
    raw = stores.values.state(job_id)
    return tuple(json.loads(raw)[key] for key in ("state", "since", "progress", "note", "worker")) if raw else None


def test_a_job_that_runs_is_written_with_what_its_slot_says_of_it(stores, report, slot):
    report.run(time.monotonic())

    assert (None, ("running", 1000.0, 0.5, "half", 3)) == (said(stores, "a"), said(stores, "b"))


def test_progress_is_written_and_what_has_not_changed_is_not_written_again(stores, report, slot):
    now = time.monotonic()
    report.run(now)
    slot.progress = 0.75
    report.run(now)
    assert 0.75 == said(stores, "b")[2]

    written = stores.values.state("b")
    slot.deadline = 1.0
    report.run(now + 5.0)
    assert written == stores.values.state("b")
    report.run(now + 10.0)
    assert written != stores.values.state("b")  # its ``until``


@pytest.mark.parametrize(
    "is_over",
    [
        {"state": State.IDLE}, {"dead": 1}, {"track": 0.0}, {"job_id": "a"}, {"attempt": 2}, {"current_index": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_job_that_has_ended_or_is_not_tracked_is_not_written(stores, report, slot, is_over):
    for name, value in is_over.items():
        setattr(slot, name, value)
    report.run(time.monotonic())

    assert (None, None) == (said(stores, "a"), said(stores, "b"))


def test_a_job_that_is_not_running_any_more_is_not_written(stores, report, slot):
    slot.hand.mark(1, Stage.DONE)
    report.run(time.monotonic())

    assert (None, None) == (said(stores, "a"), said(stores, "b"))
