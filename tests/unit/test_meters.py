"""The meters of a pool: what its slots have counted, and what readers get of it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.counts import PoolCounts, QueueFacts, counts_of, file_of
from queuepool.board.meters import OTHER, RUN_BOUNDS, MeterMemory, SlotMeters
from queuepool.payload.envelope import decode
from queuepool.steward.measure import MetersFile, PoolMeters
from queuepool.worker.meter import Meter


@pytest.fixture
def board(tmp_path):
    board = Board.create(tmp_path / "board.1-1", 4)
    board.meters = MeterMemory.new(4, 0)
    return board


def entered(board: Board, index: int = 0) -> SlotMeters:
    meters = SlotMeters(board.meters, board.slots[index])
    meters.enter()
    return meters


def begin(meters: SlotMeters, job: str = "send", queue: str = "default") -> None:
    meters.words[layout.ROW] = meters.job_row(queue, job)
    meters.words[layout.BEGUN] += 1


def end(meters: SlotMeters, way: int, duration: float, reason: str = "") -> None:
    meters.intend(way, reason)
    meters.end(duration)


def test_an_attempt_counts_by_how_it_ended_and_for_how_long_it_ran(board):
    meters = entered(board)
    begin(meters)
    end(meters, layout.DONE, 0.3)
    begin(meters)
    end(meters, layout.RELEASED + layout.AS_LOST, 90.0, "timeout")

    counts = counts_of(board).jobs["default", "send"]

    assert (counts.done, counts.released, counts.failed, counts.given_back) == (1, 1, 0, 0)
    assert (counts.timeout, counts.crash) == (1, 0)
    assert counts.run.total == 90.3
    assert counts.run.counts[RUN_BOUNDS.index(0.5)] == counts.run.counts[RUN_BOUNDS.index(120.0)] == 1
    assert counts.run.observations == counts.ended == 2


NOW = 1_763_889_100.0
PUSHES = [
    ("of one bulk", [(90, None, "90.5000")] * 3, 9.5 * 3),
    ("by Laravel, which writes no fraction", [(90, None, None), (80, None, None)], 10 + 20),
    ("with a fraction that says nothing", [(90, None, "0"), (80, None, "0")], 10 + 20),
    ("at once, for later", [(90, None, "90.5000"), (90, 5, "90.5000"), (90, None, "90.5000")], 9.5 + 4.5 + 9.5),
    ("at a whole second", [(90, None, "90.0000"), (80, None, "80.0000")], 10 + 20),
]


@pytest.mark.parametrize(("pushed", "waits"), [row[1:] for row in PUSHES], ids=[row[0] for row in PUSHES])
def test_each_job_waits_from_its_own_push(board, pushed, waits):
    meter = Meter(SlotMeters(board.meters, board.slots[0]))
    meter.turn("default", "send")
    for created, delay, text in pushed:
        fraction = text and (text if text == "0" else f"{NOW - 100 + float(text):.4f}")
        fields = {
            "job": "send",
            "data": {},
            "createdAt": int(NOW) - 100 + created,
            "delay": delay,
            "pushedAt": fraction,
        }
        meter.begins(decode(json.dumps(fields).encode()), NOW)
        meter.done(0.0)
    meter.look()

    assert waits == pytest.approx(counts_of(board).jobs["default", "send"].wait.total)


@pytest.mark.parametrize("lost", [0, layout.AS_LOST])
def test_the_board_shows_what_failed_and_was_released(board, lost):
    meters = entered(board)
    for way in (layout.RELEASED, layout.FAILED, layout.FAILED, layout.GIVEN_BACK):
        begin(meters)
        end(meters, way + lost, 1.0, "crash" if lost else "")

    assert (0, 2, 1) == board.slots[0].totals


def test_a_board_whose_meters_cannot_be_reached_counts_nothing(tmp_path):
    """That of another master, which was killed: the steward settles what its workers held."""
    board = Board.create(tmp_path / "board.1-1", 4)
    meters = SlotMeters(board.meters, board.slots[3])
    meters.note_death()
    meters.intend(layout.FAILED + layout.AS_LOST, "crash")
    meters.leave("crash")

    assert not meters.is_open
    assert (0, 0, 0) == board.totals()


def test_meters_that_are_not_published_give_empty_counts(tmp_path):
    board = Board.create(tmp_path / "board.1-1", 1)
    board.meters = MeterMemory.new(1, 0, is_published=False)
    meters = entered(board)
    begin(meters)
    end(meters, layout.FAILED, 1.0)

    assert PoolCounts() == counts_of(board)
    assert (0, 1, 0) == board.slots[0].totals


def test_the_counts_of_all_slots_are_added_up(board):
    for index in range(3):
        meters = entered(board, index)
        begin(meters)
        end(meters, layout.FAILED, 1.0)
        meters.count_error("send", "ValueError")
        meters.leave("max_jobs")

    counts = counts_of(board)

    assert counts.jobs["default", "send"].failed == 3
    assert counts.errors == {("send", "ValueError"): 3}
    assert counts.exits["max_jobs"] == 3


def test_the_next_worker_of_a_slot_goes_on_with_the_same_numbers(board):
    for _ in range(3):
        meters = entered(board)
        begin(meters)
        end(meters, layout.DONE, 0.0)
        meters.leave("max_jobs")

    counts = counts_of(board)

    assert counts.jobs["default", "send"].done == counts.exits["max_jobs"] == 3


@pytest.mark.by_turns("names")
@pytest.mark.parametrize("names", [62, 63, 64, 65, 200])
def test_any_number_of_jobs_keeps_64_rows_and_the_sum(board, names):
    for index in range(4):
        meters = entered(board, index)
        for number in range(names):
            begin(meters, f"job{(number * (index + 1)) % names}")
            end(meters, layout.DONE, 0.0)

    jobs = counts_of(board).jobs

    assert len(jobs) == min(names, 64)
    assert ((OTHER, OTHER) in jobs) == (names > 63)
    assert sum(counts.done for counts in jobs.values()) == 4 * names


def test_a_board_without_meters_gives_empty_counts(tmp_path):
    board = Board.create(tmp_path / "board.1-1", 4)

    assert counts_of(board).jobs == {}


@pytest.fixture
def wide(tmp_path):
    """Of a pool with 300 queues."""
    board = Board.create(tmp_path / "board.1-2", 2)
    board.meters = MeterMemory.new(2, len(QUEUES))
    return board


QUEUES = [f"tenant-{number:03}" for number in range(300)]


def test_every_queue_of_a_pool_is_measured_however_many_they_are(wide):
    steward = PoolMeters(wide.meters, QUEUES)
    for number in range(len(steward.queues)):
        steward.note(number, QueueFacts(ready=number, measured_at=1.0))
    file = MetersFile(file_of(wide.path), wide.meters)
    assert file.write()

    for found in (counts_of(wide), counts_of(Board.open(wide.path))):
        assert QUEUES == list(found.queues)
        assert 299 == found.queues["tenant-299"].ready


@pytest.mark.thorough("1,000 names; test_any_number_of_jobs_keeps_64_rows_and_the_sum")
def test_attempts_count_in_their_own_queue_however_many_names_of_jobs_there_are(wide):
    meters = entered(wide)
    for number in range(1000):
        begin(meters, f"job{number}", QUEUES[number % 300])
        end(meters, layout.FAILED, 0.0)

    jobs = counts_of(wide).jobs
    failed = Counter[str]()
    for (queue, _), counts in jobs.items():
        failed[queue] += counts.failed

    assert {queue: 4 if number < 100 else 3 for number, queue in enumerate(QUEUES)} == failed
    assert len(jobs) <= wide.meters.shape.job_rows
    assert jobs["tenant-000", "job0"].failed == jobs["tenant-299", "job299"].failed == 1
    assert ("tenant-299", OTHER) in jobs
    assert (OTHER, OTHER) not in jobs


def test_jobs_of_a_queue_that_the_pool_was_not_started_with_count_with_all_others(board):
    meters = entered(board)
    for number in range(100):
        begin(meters, f"job{number}", "another")
        end(meters, layout.DONE, 0.0)

    assert 100 == sum(counts.done for counts in counts_of(board).jobs.values())
    assert 37 == counts_of(board).jobs[OTHER, OTHER].done
