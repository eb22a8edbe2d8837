"""The board: facts in shared memory, the receipts in a hand, and who may read them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queuepool.board import Board, Killed, Role, Slot, State
from queuepool.hand import AREA, Held, Stage
from queuepool.record import Record, Seconds, Text, Whole
from queuepool.stores.base import Lease

READER = """
import hashlib, json, sys
from pathlib import Path
from queuepool.board import Board
board = Board.open(Path(sys.argv[1]))
slot = board.slots[1]
held = [[one.lease.queue, hashlib.sha256(one.lease.receipt).hexdigest(), one.stage.name] for one in slot.hand.held()]
print(json.dumps([board.header.target, slot.job, slot.deadline, held]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "board.1"


@pytest.fixture
def board(path: Path) -> Board:
    return Board.create(path, capacity=4)


@pytest.fixture
def slot(board: Board) -> Slot:
    return board.slots[1]


def leases(*sizes: int, queue: str = "default") -> list[Lease]:
    return [Lease(queue, bytes([65 + number % 26]) * size) for number, size in enumerate(sizes)]


def held_by(slot: Slot) -> list[Lease]:
    return [one.lease for one in slot.hand.held()]


# Records


class Sample(Record):
    whole = Whole()
    text = Text(10)
    seconds = Seconds()
    last = Text(3)


@pytest.fixture
def sample() -> Sample:
    return Sample(bytearray(8 + Sample.size), 8)


def test_a_record_begins_empty(sample):
    assert (0, "", 0.0, "") == (sample.whole, sample.text, sample.seconds, sample.last)


def test_every_field_keeps_what_was_written(sample):
    sample.whole, sample.text, sample.seconds, sample.last = -(2**62), "é", 1.5, "end"

    assert (-(2**62), "é", 1.5, "end") == (sample.whole, sample.text, sample.seconds, sample.last)


def test_numbers_lie_where_one_store_writes_them():
    assert [0, 0, 0, 0] == [field.offset % 8 for field in vars(Sample).values() if hasattr(field, "offset")]


def test_a_cleared_record_is_empty_and_its_neighbours_are_not(sample):
    sample.memory[:8] = b"neighbor"
    sample.whole, sample.text = 7, "x"

    sample.clear()

    assert (0, "") == (sample.whole, sample.text)
    assert b"neighbor" == bytes(sample.memory[:8])


@pytest.mark.parametrize(
    ("text", "kept"), [("x" * 11, "x" * 10), ("é" * 6, "é" * 5), ("xé" * 4, "xéxéxéx"), ("😀😀😀", "😀😀")]
)
def test_a_text_that_is_too_long_is_cut_between_two_characters(sample, text, kept):
    sample.text = text

    assert kept == sample.text


def test_a_shorter_text_leaves_nothing_of_a_longer_one(sample):
    sample.text = "0123456789"
    sample.text = "ab"

    assert "ab" == sample.text


@given(text=st.text(max_size=20), more=st.text(max_size=20))
@settings(deadline=None)
def test_whatever_is_written_stays_in_its_place(text, more):
    sample = Sample(bytearray(Sample.size), 0)
    sample.text, sample.seconds, sample.last, sample.whole = text, 2.5, more, 9

    assert (9, 2.5) == (sample.whole, sample.seconds)
    assert sample.text.encode("utf-8", "replace") == text.encode("utf-8", "replace")[: len(sample.text.encode())]


# The board


def test_a_new_board_has_its_slots_and_nobody_in_them(board):
    assert (4, []) == (len(board.slots), board.of(Role.WORKER))


def test_a_board_is_readable_by_its_owner_alone(board, path):
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_board_is_never_made_over_another(board, path):
    with pytest.raises(FileExistsError):
        Board.create(path, capacity=4)


def test_a_board_takes_only_the_room_that_is_written(path):
    Board.create(path, capacity=1_000)

    about = path.stat()
    assert about.st_size > 1_000 * AREA
    assert about.st_blocks * 512 < 1_000_000


def test_what_one_mapping_writes_another_reads(board, path):
    other = Board.open(path)

    board.slots[1].job = "app.mail"
    board.slots[1].hand.hold(leases(10))

    assert ("app.mail", leases(10)) == (other.slots[1].job, held_by(other.slots[1]))


def test_a_board_opened_to_be_read_cannot_be_written(board, path):
    with pytest.raises(TypeError):
        Board.open(path).header.target = 3


def test_a_board_opened_to_be_written_can(board, path):
    Board.open(path, write=True).header.scale = 3

    assert 3 == board.header.scale


def test_another_process_reads_the_facts_and_the_receipts(board, slot, path):
    board.header.target, slot.job, slot.deadline = 4, "app.mäil", 12.5
    given = leases(100, 1_000_000)
    slot.hand.hold(given)
    slot.hand.mark(0, Stage.RUNNING)

    done = subprocess.run([sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=True)

    target, job, deadline, held = json.loads(done.stdout)
    assert (4, "app.mäil", 12.5) == (target, job, deadline)
    digests = [hashlib.sha256(lease.receipt).hexdigest() for lease in given]
    assert [["default", digests[0], "RUNNING"], ["default", digests[1], "RESERVED"]] == held


def test_what_a_killed_process_wrote_is_still_there(board, slot):
    pid = os.fork()
    if 0 == pid:
        slot.hand.hold(leases(10, 20))
        slot.job = "app.mail"
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)

    assert ("app.mail", leases(10, 20)) == (slot.job, held_by(slot))


def test_a_board_of_another_version_is_refused(board, path):
    board.header.magic = 1

    with pytest.raises(ValueError, match="version"):
        Board.open(path)


@pytest.mark.parametrize("size", [0, 100, 4096, 10_000, 4 * AREA])
def test_a_board_cut_short_is_refused(board, path, size):
    os.truncate(path, size)

    with pytest.raises(ValueError):
        Board.open(path)


def test_a_board_that_is_a_link_is_refused(board, path, tmp_path):
    link = tmp_path / "board.2"
    link.symlink_to(path)

    with pytest.raises(OSError):
        Board.open(link)


def test_a_board_that_is_gone_is_not_there(path):
    with pytest.raises(FileNotFoundError):
        Board.open(path)


def test_an_unlinked_board_leaves_nothing_beside_it(board, slot, path, tmp_path):
    slot.hand.hold(leases(1_000_000))

    board.unlink()

    assert [] == list(tmp_path.iterdir())
    assert 4 == board.header.capacity


# Lives


def test_a_new_life_has_nothing_of_the_last_one(slot):
    slot.begin(Role.WORKER, 1, 1)
    slot.pid, slot.state, slot.job, slot.deadline, slot.killed = 7, State.BUSY, "app.mail", 9.0, Killed.OVERDUE
    slot.hand.hold(leases(10))

    slot.begin(Role.WORKER, 2, 3)

    assert (Role.WORKER, 2, 3, 0, State.STARTING) == (slot.role, slot.number, slot.generation, slot.pid, slot.state)
    assert ("", 0.0, Killed.NOT, []) == (slot.job, slot.deadline, slot.killed, held_by(slot))


def test_a_life_is_not_settled_because_the_one_before_it_was(slot):
    slot.begin(Role.WORKER, 1, 1)
    slot.settled_life = slot.life

    slot.begin(Role.WORKER, 1, 1)

    assert slot.life != slot.settled_life


def ended(slot: Slot, *, left: int = 0, settled: bool = False, held: int = 0) -> Slot:
    """A worker that ended, its counters at 1, 2 and 3."""
    slot.begin(Role.WORKER, 1, 1)
    slot.done, slot.failed, slot.released = 1, 2, 3
    slot.hand.hold(leases(*[5] * held))
    slot.dead, slot.left, slot.settled_life = 1, left, slot.life if settled else 0
    return slot


def test_what_ended_lives_counted_is_kept(board):
    ended(board.slots[0], settled=True)
    ended(board.slots[1], left=1)
    board.slots[2].begin(Role.WORKER, 2, 1)
    board.slots[2].done = 4

    board.free_settled()

    assert (6, 4, 6) == board.totals()
    assert [board.slots[2]] == board.of(Role.WORKER)


@pytest.mark.parametrize("facts", [{"held": 1}, {"held": 1, "left": 1}, {}])
def test_a_slot_is_kept_until_its_dead_are_settled(board, slot, facts):
    ended(slot, **facts)

    board.free_settled()

    assert [slot] == board.of(Role.WORKER)


def test_a_slot_whose_dead_left_with_empty_hands_is_free(board, slot):
    ended(slot, left=1)

    board.free_settled()

    assert [] == board.of(Role.WORKER)


@pytest.mark.parametrize(("killed", "kept"), [(Killed.STOP, False), (Killed.OVERDUE, True), (Killed.NOT, True)])
def test_a_template_that_the_master_ended_needs_no_word_and_one_that_died_does(board, slot, killed, kept):
    slot.begin(Role.TEMPLATE, 0, 1)
    slot.killed, slot.dead = killed, 1

    board.free_settled()

    assert kept == bool(board.of(Role.WORKER, Role.TEMPLATE))


def test_a_free_slot_is_given_while_there_is_one(board):
    for slot in board.slots:
        assert slot is board.free_slot()
        slot.begin(Role.WORKER, 1, 1)

    assert None is board.free_slot()


@pytest.mark.parametrize(
    ("turn", "renewed_turn", "renewed_end", "expected"),
    [(1, 0, 0.0, 100.0), (1, 1, 150.0, 150.0), (2, 1, 150.0, 100.0)],
)
def test_a_lease_ends_as_reserved_or_as_renewed_for_this_very_turn(slot, turn, renewed_turn, renewed_end, expected):
    slot.lease_end, slot.turn, slot.renewed_turn, slot.renewed_end = 100.0, turn, renewed_turn, renewed_end

    assert expected == slot.lease_deadline


# The hand


def test_a_hand_holds_what_it_was_given_in_its_order(slot):
    slot.hand.hold([*leases(1, 2), *leases(3, queue="hîgh")])

    assert [
        Held(Lease("default", b"A"), Stage.RESERVED),
        Held(Lease("default", b"BB"), Stage.RESERVED),
        Held(Lease("hîgh", b"AAA"), Stage.RESERVED),
    ] == slot.hand.held()


def test_a_hand_holds_sixty_four_receipts(slot):
    many = leases(*[2_000] * 64)

    slot.hand.hold(many)

    assert many == held_by(slot)


def test_receipts_beyond_the_area_lie_beside_the_board(slot, path):
    many = leases(*[10_000] * 64, queue="q" * 200)

    slot.hand.hold(many)

    assert many == held_by(slot)
    assert [] != list(path.parent.glob("board.1.*"))


def test_a_receipt_of_a_megabyte_is_held_with_its_neighbours(board, slot):
    board.slots[2].hand.hold(leases(5))
    many = leases(10, 1_000_000, 20)

    slot.hand.hold(many)

    assert many == held_by(slot)
    assert leases(5) == held_by(board.slots[2])


@given(
    sizes=st.lists(st.sampled_from([0, 1, 100, 5_000, 100_000, 200_000]), max_size=64), queue=st.sampled_from([1, 200])
)
@example(sizes=[100_000, *[5_000] * 5, 4_000, *[200_000] * 57], queue=200)
@settings(max_examples=60, deadline=None)
def test_receipts_of_any_size_never_touch_the_next_slot(tmp_path_factory, sizes, queue):
    path = tmp_path_factory.mktemp("board") / "board.1"
    board = Board.create(path, capacity=2)
    board.slots[1].hand.hold(leases(7))

    board.slots[0].hand.hold(leases(*sizes, queue="q" * queue))

    assert leases(*sizes, queue="q" * queue) == held_by(board.slots[0])
    assert leases(7) == held_by(board.slots[1])


def test_a_new_hand_forgets_the_last_one(slot):
    slot.hand.hold(leases(1_000_000, 5))
    slot.hand.hold(leases(3))

    assert leases(3) == held_by(slot)


def test_a_dropped_hand_is_empty(slot):
    slot.hand.hold(leases(1, 2))
    slot.hand.drop()

    assert [] == held_by(slot)


def test_a_mark_is_of_one_job_alone(slot):
    slot.hand.hold(leases(1, 2, 1_000_000))

    slot.hand.mark(1, Stage.RUNNING)
    slot.hand.mark(2, Stage.DONE)

    assert [Stage.RESERVED, Stage.RUNNING, Stage.DONE] == [one.stage for one in slot.hand.held()]


def test_any_byte_may_be_in_a_receipt(slot):
    receipt = bytes(range(256))

    slot.hand.hold([Lease("default", receipt)])

    assert [receipt] == [lease.receipt for lease in held_by(slot)]
