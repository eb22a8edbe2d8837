"""A slot's lanes: what a worker writes there, and what others read of it at any moment, whatever the memory holds."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.board.board import Board, Role, Slot, next_deadline
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_layout import INLINE, MOST_LANES, ON_CPU, RULING, LanePage, lanes_in, lanes_size
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.board.lanes import HeldLane, LaneOrder, Lanes
from queuepool.board.record import Field, SharedFile
from queuepool.payload.lease import Lease, LeaseRow
from tests.support.effort import effort

MAIL = LaneJobs('{"tries":3}', "app.mail", track=60.0)
LEASE = Lease("high", b'{"id":"a"}', 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "board.1-1"


@pytest.fixture
def board(path: Path) -> Board:
    """A board whose slots have three lanes."""
    board = Board.create(path, capacity=3, lanes=3)
    board.slots[1].begin(Role.WORKER, 1, 1)
    return board


@pytest.fixture
def slot(board: Board) -> Slot:
    return board.slots[1]


@pytest.fixture
def lanes(slot: Slot) -> Lanes:
    """As its steward reads and writes them."""
    return lanes_of(slot)


@pytest.fixture
def writer(path: Path, board: Board) -> LaneWriter:
    return LaneWriter(lanes_of(Board.open(path, write=True).mapped().slots[1]))


def lanes_of(slot: Slot) -> Lanes:
    assert slot.lanes
    return slot.lanes


def begin(writer: LaneWriter, lane: int, job_id: str = "a", jobs: LaneJobs = MAIL) -> None:
    writer.begins(lane, jobs, job_id=job_id, attempt=2, since=1e9, deadline=160.0)


# The board


def test_lanes_of_another_layout_have_another_magic(board):
    """As of slots (``test_board.py``): if this fails, raise the magic's last number."""
    layout = [(name, field.offset, field.size) for name, field in vars(LanePage).items() if isinstance(field, Field)]
    sizes = INLINE, lanes_size(1), lanes_size(1000)

    assert (0x71756575_0000000D, 2641586466) == (board.header.magic, zlib.crc32(repr((layout, sizes)).encode()))


def test_a_board_without_lanes_is_as_it_was(tmp_path):
    plain = Board.create(tmp_path / "board.2-2", capacity=3)

    assert (None, 0, 4096 + 3 * 270336) == (plain.slots[0].lanes, plain.lanes, len(plain.memory))


@pytest.mark.parametrize("count", [1, 2, 100, 1064, MOST_LANES])
def test_a_board_of_any_number_of_lanes_is_opened_with_them(tmp_path, count):
    made = Board.create(tmp_path / "board.2-2", capacity=3, lanes=count)

    found = Board.open(made.path)

    assert (3, count) == (len(found.slots), found.lanes)
    assert [(slot.base, lanes_of(slot).count) for slot in made.slots] == [
        (slot.base, lanes_of(slot).count) for slot in found.slots
    ]


def test_each_number_of_lanes_has_a_size_of_its_own():
    sizes = [lanes_size(count) for count in range(MOST_LANES + 1)]

    assert sizes == sorted(set(sizes))
    assert [0] == sorted({size % 4096 for size in sizes})
    assert (None, None, None) == (lanes_in(-4096), lanes_in(4096), lanes_in(lanes_size(MOST_LANES) + 4096))


@pytest.mark.parametrize("cut", [1, 4096, 10_000, 17 * 4096])
def test_a_board_cut_short_is_refused(board, path, cut):
    os.truncate(path, path.stat().st_size - cut)

    with pytest.raises(ValueError, match="version"):
        Board.open(path)


def test_lanes_take_room_only_for_the_processes_that_there_are(tmp_path):
    board = Board.create(tmp_path / "board.2-2", capacity=100, lanes=500)
    before = board.path.stat()

    board.allocate(board.slots[7])

    taken = (board.path.stat().st_blocks - before.st_blocks) * 512
    assert before.st_size > 100 * 2_000_000
    assert lanes_size(500) <= taken < 3_000_000


# What is held


def test_a_new_lane_is_free(lanes, slot):
    slot.exited_cleanly = 1

    assert ([], True, True, None) == (lanes.held(), lanes.is_empty, slot.holds_nothing, lanes.on_cpu)


def test_a_job_is_held_from_the_moment_at_which_its_receipt_is_known(lanes, slot, writer):
    writer.take(1, LEASE, 190.0)
    slot.exited_cleanly = 1

    assert [HeldLane(1, 1, LEASE, Stage.RESERVED)] == lanes.held()
    assert (False, False, 190.0) == (lanes.is_empty, slot.holds_nothing, slot.lease_deadline)


@pytest.mark.parametrize("row", [None, LeaseRow(2**40, 3), LeaseRow(0, 0)])
def test_a_lease_comes_back_as_it_was(lanes, writer, row):
    lease = Lease("hîgh" * 40, bytes(range(256)), 2**40, row)

    writer.take(2, lease, 190.0)

    assert [lease] == [one.lease for one in lanes.held()]


@pytest.mark.parametrize(("size", "files"), [(0, 0), (INLINE, 0), (INLINE + 1, 1), (1_000_000, 1)])
def test_a_receipt_is_on_its_page_or_beside_the_board(lanes, board, writer, path, size, files):
    lanes_of(board.slots[2]).clear()
    writer.take(2, Lease("default", b"x" * size), 190.0)

    assert [b"x" * size] == [one.lease.receipt for one in lanes.held()]
    assert files == len(list(path.parent.glob("board.1-1.*")))
    assert [] == lanes_of(board.slots[2]).held()

    board.unlink()

    assert [] == list(path.parent.iterdir())


def test_a_job_whose_receipt_finds_no_room_is_not_held(lanes, writer, path):
    lanes.file(1).mkdir()  # what a full disk does is told by the same error

    with pytest.raises(OSError):
        writer.take(1, Lease("default", b"x" * 5_000), 190.0)

    assert [] == lanes.held()


def test_a_job_that_runs_has_all_facts(lanes, writer):
    writer.take(1, LEASE, 190.0)
    begin(writer, 1)
    writer.progress(1, 0.5, "rows")

    expected = HeldLane(
        1, 1, LEASE, Stage.RUNNING, MAIL.policy, "app.mail", "a", 2, 1e9, 160.0, 60.0, 0.5, "rows", lease_end=190.0
    )
    assert [expected] == lanes.held()


def test_the_next_job_of_a_lane_has_nothing_of_the_last_one(lanes, writer):
    writer.take(1, LEASE, 190.0)
    begin(writer, 1)
    writer.progress(1, 0.0, "rows")
    said = [one.progress for one in lanes.held()]
    writer.free(1)
    writer.take(1, Lease("low", b"{}"), 290.0)
    reserved = lanes.held()
    begin(writer, 1, "b", LaneJobs("{}", "app.other"))

    assert [0.0] == said
    assert [HeldLane(1, 2, Lease("low", b"{}"), Stage.RESERVED)] == reserved
    assert [("app.other", "b", "{}", 0.0, None, "", False)] == [
        (one.job, one.job_id, one.policy, one.track, one.progress, one.note, one.counted) for one in lanes.held()
    ]


@pytest.mark.parametrize("stage", [Stage.READING, Stage.DONE, Stage.SETTLED])
def test_a_stage_is_of_one_lane_alone(lanes, writer, stage):
    for lane in range(3):
        writer.take(lane, LEASE, 190.0)

    lanes.mark(1, stage)

    others = [(0, Stage.RESERVED), (2, Stage.RESERVED)]
    held = others if stage == Stage.SETTLED else sorted([*others, (1, stage)])
    assert held == [(one.lane, one.stage) for one in lanes.held()]


def test_what_a_killed_process_wrote_is_still_there(lanes, path):
    pid = os.fork()
    if 0 == pid:
        try:
            writer = LaneWriter(lanes_of(Board.open(path, write=True).mapped().slots[1]))
            writer.take(2, LEASE, 190.0)
            begin(writer, 2)
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)

    assert [(2, "a", LEASE)] == [(one.lane, one.job_id, one.lease) for one in lanes.held()]


def test_a_new_worker_of_the_slot_holds_nothing_and_its_jobs_have_other_turns(slot, lanes, writer):
    writer.take(1, LEASE, 190.0)
    lanes.wholes[ON_CPU] = 2
    lanes.renew(1, 1, 500.0)

    slot.begin(Role.WORKER, 1, 1)
    late, nothing = lanes.held(), (lanes.on_cpu, lanes.lease_deadline)
    writer.take(1, LEASE, 190.0)
    lanes.renew(1, 1, 10.0)  # by a steward that had asked the store for the dead one's leases

    assert ([], (None, 0.0)) == (late, nothing)
    assert (190.0, [2]) == (lanes.lease_deadline, [one.turn for one in lanes.held()])


def test_a_job_of_a_new_worker_has_no_note_of_the_last_one(slot, lanes, writer, path):
    writer.take(1, LEASE, 190.0)
    begin(writer, 1)
    writer.progress(1, 0.5, "rows")

    slot.begin(Role.WORKER, 1, 1)
    fresh = LaneWriter(lanes_of(Board.open(path, write=True).mapped().slots[1]))
    fresh.take(1, LEASE, 190.0)
    begin(fresh, 1)

    assert [(None, "")] == [(one.progress, one.note) for one in lanes.held()]


# What changes during a read


class Slow(SharedFile):
    """A file in which something happens between two reads: after so many."""

    def __init__(self, memory: SharedFile, reads: int, happens: Callable[[], None]) -> None:
        super().__init__(memory.fd, len(memory))
        self._reads = reads
        self._happens = happens

    def __getitem__(self, place: slice) -> bytes:
        self._reads -= 1
        if self._reads == -1:
            self._happens()
        return super().__getitem__(place)


@pytest.fixture
def read_slowly(slot: Slot):
    """The slot's lanes, read while something happens."""

    def lanes(reads: int, happens: Callable[[], None]) -> Lanes:
        ours = lanes_of(slot)
        return Lanes(Slow(slot.memory, reads, happens), ours.page_at(0) - 4096, ours.count, str(ours.file(0)))

    return lanes


@pytest.mark.parametrize("reads", [1, 2, 3, 4])
def test_a_lane_that_is_used_anew_during_a_read_is_none_of_those_that_are_read(writer, read_slowly, reads):
    for lane in range(3):
        writer.take(lane, LEASE, 190.0)

    def happens() -> None:
        writer.free(1)
        writer.take(1, Lease("low", b"{}"), 290.0)

    found = read_slowly(reads, happens).held()

    assert [(0, LEASE), (2, LEASE)] == [(one.lane, one.lease) for one in found]


@pytest.mark.parametrize("reads", [1, 4])
def test_a_lane_that_is_emptied_during_a_read_is_none_of_those_that_are_read(writer, read_slowly, reads):
    writer.take(0, LEASE, 190.0)
    writer.take(1, LEASE, 190.0)
    writer.take(2, LEASE, 190.0)

    assert [0, 2] == [one.lane for one in read_slowly(reads, lambda: writer.free(1)).held()]


def test_a_lease_that_was_lost_is_not_that_of_the_lane_s_next_job(writer, lanes, read_slowly):
    writer.take(0, LEASE, 190.0)
    lanes.renew(0, 1, 10.0)
    lost = lanes.lease_deadline

    def happens() -> None:
        writer.free(0)
        writer.take(0, LEASE, 290.0)

    assert (10.0, 0.0) == (lost, read_slowly(1, happens).lease_deadline)
    assert 290.0 == lanes.lease_deadline


# Leases and orders


def test_the_first_lease_to_end_counts(slot, writer):
    for lane, end in enumerate([190.0, 150.0, 170.0]):
        writer.take(lane, LEASE, end)
    writer.ended(1)

    assert (170.0, 169.5) == (slot.lease_deadline, next_deadline(slot, 1.0))


def test_a_lease_is_renewed_for_the_job_that_had_this_turn_alone(lanes, writer):
    writer.take(0, LEASE, 190.0)
    lanes.renew(0, 1, 250.0)
    renewed = lanes.lease_deadline
    writer.free(0)
    writer.take(0, LEASE, 300.0)
    lanes.renew(0, 1, 100.0)  # the store was slow

    assert (250.0, 300.0) == (renewed, lanes.lease_deadline)


def test_an_order_is_to_the_job_that_had_this_turn_alone(lanes, writer):
    writer.take(0, LEASE, 190.0)
    writer.take(2, LEASE, 190.0)
    lanes.order(0, 1, LaneOrder.CANCEL)
    lanes.order(2, 1, LaneOrder.LOST)
    heard = lanes.orders()
    writer.free(0)
    writer.take(0, LEASE, 190.0)

    assert [(0, LaneOrder.CANCEL), (2, LaneOrder.LOST)] == heard
    assert [(2, LaneOrder.LOST)] == lanes.orders()


# A ruling


def test_a_ruling_is_there_once_it_is_whole_and_of_one_incarnation(slot, lanes):
    lanes.rule(slot.incarnation, {0: 9, 2: 1})
    other = lanes.ruling(slot.incarnation + 1)
    lanes.rule(slot.incarnation, {1: 3})

    assert (None, {1: 3}) == (other, lanes.ruling(slot.incarnation))


def test_a_ruling_of_which_not_all_is_written_is_none(slot, lanes):
    lanes.wholes[lanes._at(RULING, 1)] = 3

    assert None is lanes.ruling(slot.incarnation)


def test_a_new_worker_of_the_slot_has_no_ruling_on_it(slot, lanes, writer):
    lanes.rule(slot.incarnation, {0: 9})
    writer.settles(2)
    settling = lanes.settling

    slot.begin(Role.WORKER, 1, 1)

    assert (2, None, None) == (settling, lanes.settling, lanes.ruling(slot.incarnation))


@pytest.mark.parametrize(("word", "lane"), [(0, None), (1, 0), (3, 2), (4, 3), (5, None), (-1, None), (2**62, None)])
def test_the_word_names_a_lane_that_there_is(lanes, word, lane):
    lanes.wholes[ON_CPU] = word

    assert lane == lanes.on_cpu


# Any bits


def test_a_damaged_lane_is_no_job_and_its_neighbours_are(lanes, writer, path):
    for lane in range(3):
        writer.take(lane, Lease("default", b"x" * 5_000 if lane == 1 else b"{}"), 190.0)

    lanes.file(1).write_bytes(b"cut")

    assert [0, 2] == [one.lane for one in lanes.held()]


@given(
    raw=st.binary(min_size=4_000, max_size=4_000),
    fill=st.sampled_from([b"", b"\xff", b"\x7f", b"\x01\0\0\0\0\0\0\0"]),
    seed=st.integers(0, 5),
)
@effort(200)
def test_whatever_lanes_hold_they_can_be_read(tmp_path_factory, raw, fill, seed):
    board = Board.create(tmp_path_factory.mktemp("board") / "board.1-1", capacity=2, lanes=3)
    slot, size = board.slots[0], lanes_size(3)
    lanes = lanes_of(slot)
    first = board.slots[1].base - size
    noise = (fill or raw) * (size // len(fill or raw) + 1)
    board.memory[first : first + size] = noise[seed : seed + size]
    for lane in range(3):
        lanes.mark(lane, Stage.RUNNING)

    assert all(0 <= one.attempt < 2**48 and one.since < float("inf") for one in lanes.held())
    assert {lanes.on_cpu, lanes.settling} <= {None, 0, 1, 2}
    assert isinstance(lanes.ruling(slot.incarnation), dict | None)
    assert next_deadline(slot, 1.0) == next_deadline(slot, 1.0)  # a number
    assert [order for _, order in lanes.orders()] == [LaneOrder(order) for _, order in lanes.orders()]

    slot.begin(Role.WORKER, 1, 1)

    assert (True, None) == (lanes.is_empty, lanes.on_cpu)
    assert 0 == board.slots[1].incarnation
