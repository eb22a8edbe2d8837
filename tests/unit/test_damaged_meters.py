"""The file with the meters is cut, overwritten or removed: nobody reads nonsense, and the steward makes it anew."""

from __future__ import annotations

import os
import resource
import threading

import pytest

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.counts import PoolCounts, counts_of, file_of
from queuepool.board.meters import MeterMemory, SlotMeters
from queuepool.steward.measure import MetersFile

pytestmark = pytest.mark.bad_input("B167")


@pytest.fixture
def board(tmp_path):
    """A board with one attempt counted and published."""
    board = Board.create(tmp_path / "board.1-1", 2)
    board.meters = MeterMemory.new(2, 0)
    one_more_attempt(board, 0, "send")
    return board


def one_more_attempt(board: Board, slot: int, job: str) -> None:
    meters = SlotMeters(board.meters, board.slots[slot])
    meters.enter()
    meters.words[layout.ROW] = meters.job_row("default", job)
    meters.words[layout.BEGUN] += 1
    meters.intend(layout.DONE)
    meters.end(0.1)


@pytest.fixture
def file(board):
    return MetersFile(file_of(board.path), board.meters)


def as_read_outside(board: Board) -> PoolCounts:
    return counts_of(Board.open(board.path))


def cut(path):
    os.truncate(path, 5000)


def fill(path):
    path.write_bytes(b"\xff" * path.stat().st_size)


def another_version(path):
    with path.open("r+b") as stream:
        stream.write(b"\x07")


def not_a_file(path):
    path.unlink()
    path.symlink_to("/etc/passwd")


def speaks_of_many_queues(path):
    """A job makes it as long as that would be: nobody reads so much."""
    shape = layout.Shape(2, 2**30)
    os.truncate(path, shape.size)
    with path.open("r+b") as stream:
        stream.seek(layout.ROOM * layout.WORD)
        stream.write(shape.queues.to_bytes(8, "little"))


DAMAGES = {"cut": cut, "empty": lambda path: os.truncate(path, 0), "filled": fill, "version": another_version}
DAMAGES |= {"many queues": speaks_of_many_queues, "removed": os.unlink, "replaced": not_a_file}


def test_the_file_says_what_the_memory_says_and_is_its_owners_alone(board, file):
    assert file.write()

    assert as_read_outside(board) == counts_of(board)
    assert as_read_outside(board).jobs["default", "send"].done == 1
    assert file_of(board.path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_gives_nothing_and_is_made_anew(board, file, damage):
    file.write()
    DAMAGES[damage](file_of(board.path))

    assert as_read_outside(board) == PoolCounts()
    assert not file.write()
    assert as_read_outside(board) == counts_of(board)
    assert file.write()


def test_rows_of_nonsense_are_no_counts(board, file):
    file.write()
    with file_of(board.path).open("r+b") as stream:
        stream.seek(board.meters.shape.area_at(0) + layout.FIRST_JOB * layout.WORD)
        stream.write(b"\xff" * 2 * layout.JOB_ROW * layout.WORD)

    assert all(counts.ended == 0 and counts.run.total == 0.0 for counts in as_read_outside(board).jobs.values())


def test_what_found_no_room_is_written_as_soon_as_there_is_some(board, file):
    """The file may not grow beyond the middle of a new row: the call writes a part, and says so by its number alone."""
    file.write()
    before = as_read_outside(board)
    place = board.meters.shape.area_at(1) + (layout.FIRST_JOB + layout.JOB_ROW) * layout.WORD
    one_more_attempt(board, 1, "resize")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (place + 8, hard))
    try:
        with pytest.raises(OSError, match=r"space|large"):
            file.write()
        assert as_read_outside(board) == before
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert file.write()
    assert as_read_outside(board) == counts_of(board) != before


def test_the_next_steward_goes_on_with_the_file(board, file):
    file.write()
    before = file_of(board.path).stat().st_ino

    assert MetersFile(file_of(board.path), board.meters).write()
    assert before == file_of(board.path).stat().st_ino


def test_it_goes_with_its_board(board, file):
    file.write()
    board.unlink()

    assert [] == list(board.path.parent.iterdir())


@pytest.mark.thorough("a race that is met by many repetitions")
def test_a_reader_beside_the_writer_sees_no_row_without_its_names(tmp_path):
    """The file is written in several steps, and read between any two of them: many times, to meet such a moment."""
    seen = set[tuple[str, str]]()
    for number in range(20):
        board = Board.create(tmp_path / f"board.{number}-1", 1)
        board.meters = MeterMemory.new(1, 0)
        seen |= seen_while_rows_are_added(board)

    assert ("", "") not in seen
    assert ("default", "job 1") in seen


def seen_while_rows_are_added(board: Board) -> set[tuple[str, str]]:
    meters, file = SlotMeters(board.meters, board.slots[0]), MetersFile(file_of(board.path), board.meters)
    elsewhere, is_over, seen = Board.open(board.path), threading.Event(), set[tuple[str, str]]()

    def look() -> None:
        ends = False
        while not ends:
            ends = is_over.is_set()  # the last look comes after the last row
            seen.update(counts_of(elsewhere).jobs)

    reader = threading.Thread(target=look)
    reader.start()
    meters.enter()
    for number in range(layout.ROWS):
        meters.job_row("default", f"job {number}")
        file.write()
    is_over.set()
    reader.join()
    return seen
