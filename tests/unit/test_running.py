"""What a worker runs, as its slot and the JSON of ``status`` say it: one value for each job."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuepool.board.board import Board, Role, Slot, State
from queuepool.board.held_jobs import SAYS_0, Running
from queuepool.board.overview import JobRow, ProcessRow


@pytest.fixture
def slot(tmp_path: Path) -> Slot:
    """Of a worker that runs the third of the jobs that it holds."""
    slot = Board.create(tmp_path / "board.1-1", 2).slots[1]
    slot.begin(Role.WORKER, 1, 1)
    slot.job, slot.job_id, slot.queue, slot.attempt, slot.since = "app.mail", "a", "high", 2, 1000.5
    slot.deadline, slot.track, slot.policy, slot.current_index = 60.25, 600.0, '{"tries": 3}', 2
    slot.note, slot.progress, slot.state = "rows", SAYS_0, State.BUSY
    return slot


def test_a_busy_worker_runs_the_job_that_its_slot_shows(slot):
    expected = Running(2, "app.mail", "a", "high", 2, 1000.5, 60.25, 600.0, 0.0, "rows", '{"tries": 3}')

    assert [expected] == slot.running()


@pytest.mark.parametrize("state", sorted(set(State) - {State.BUSY}))
def test_a_worker_that_is_not_busy_runs_none_and_shows_its_last(slot, state):
    slot.state = state

    assert ([], ["a"]) == (slot.running(), [one.id for one in slot.shown()])


def test_a_dead_worker_runs_none_and_shows_its_last(slot):
    slot.dead = 1

    assert ([], ["a"]) == (slot.running(), [one.id for one in slot.shown()])


def test_what_was_read_does_not_change_with_the_slot(slot):
    [before] = slot.running()
    slot.job_id, slot.progress = "b", 0.5

    assert [("a", 0.0), ("b", 0.5)] == [(one.id, one.progress) for one in (before, *slot.running())]


def busy_with(*jobs: JobRow) -> ProcessRow:
    return ProcessRow(role="worker", number=1, state="busy", jobs=jobs)


def test_one_job_of_a_process_is_published_as_by_earlier_versions():
    said = busy_with(JobRow(name="app.mail", id="a")).to_json()

    assert ("a", False) == (said["job"]["id"], "jobs" in said)
    assert {"job", "jobs"}.isdisjoint(busy_with().to_json())


def test_of_several_jobs_of_a_process_all_are_published_and_the_oldest_as_the_one():
    process = busy_with(JobRow(name="app.mail", id="a"), JobRow(name="app.call", id="b", progress=0.5, note="half"))
    said = process.to_json()

    assert ("a", ["a", "b"]) == (said["job"]["id"], [job["id"] for job in said["jobs"]])
    assert process == ProcessRow.from_json(said)
