"""The board: facts in shared memory, receipts of held jobs, and access to them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queuepool.board.board import Board, Header, Killed, Role, Slot, State, next_deadline
from queuepool.board.held_jobs import AREA, HeldJob, Stage
from queuepool.board.record import Field, Record, Seconds, Text, Whole
from queuepool.board.status import overview, title
from queuepool.board.step_place import StepPlace
from queuepool.master.children import Child, Children
from queuepool.payload.lease import Lease
from tests.support.each import each
from tests.support.effort import effort

READER = """
import hashlib, json, sys
from pathlib import Path
from queuepool.board.board import Board
board = Board.open(Path(sys.argv[1]))
slot = board.slots[1]
held = [[one.lease.queue, hashlib.sha256(one.lease.receipt).hexdigest(), one.stage.name] for one in slot.hand.held()]
print(json.dumps([board.header.target, slot.job, slot.deadline, held]))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "board.1"


def test_slots_of_another_layout_have_another_magic(path):
    """A steward settles what killed pools left: with the offsets of another version it would settle nonsense.

    If this fails, raise the magic's last number in ``board/board.py``, in the probe and in docs/services.md.
    """
    fields = (pair for record in (Slot, StepPlace) for pair in vars(record).items())
    layout = [(name, field.offset, field.size) for name, field in fields if isinstance(field, Field)]

    assert (0x71756575_0000000D, 3142247113) == (Board.create(path, 1).header.magic, zlib.crc32(repr(layout).encode()))


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


@each(("text", "kept"), [("x" * 11, "x" * 10), ("é" * 6, "é" * 5), ("xé" * 4, "xéxéxéx"), ("😀😀😀", "😀😀")])
def test_a_text_that_is_too_long_is_cut_between_two_characters(sample, text, kept):
    sample.text = text

    assert kept == sample.text


def test_a_shorter_text_leaves_nothing_of_a_longer_one(sample):
    sample.text = "0123456789"
    sample.text = "ab"

    assert "ab" == sample.text


@given(text=st.text(max_size=20), more=st.text(max_size=20))
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


def test_a_board_takes_room_only_for_the_processes_that_there_are(path):
    board = Board.create(path, capacity=1_000, room_for=1)
    before = path.stat()
    board.allocate(board.slots[7])

    assert before.st_size > 1_000 * AREA
    assert 2 * AREA <= before.st_blocks * 512 < 1_000_000
    assert 2 * AREA <= (path.stat().st_blocks - before.st_blocks) * 512 < 1_000_000


def test_a_mapped_board_and_its_file_say_the_same_and_no_descriptor_is_left(board, path):
    mapped, others = board.mapped(), Board.open(path, write=True)
    mapped.slots[1].job, mapped.slots[1].deadline = "app.mail", 2.5
    others.header.scale = 3
    others.slots[2].hand.hold(leases(10))

    assert ("app.mail", 2.5) == (others.slots[1].job, others.slots[1].deadline)
    assert (3, leases(10)) == (mapped.header.scale, held_by(mapped.slots[2]))
    assert [str(path)] == [link for link in open_files() if link.startswith(str(path))]


def open_files() -> list[str]:
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            links.append(os.readlink(link))
    return links


@pytest.mark.parametrize("size", [0, 100, 5_000])
def test_a_board_that_is_cut_short_reads_as_zeros_and_is_made_whole(board, path, size):
    board.slots[1].begin(Role.WORKER, 1, 1)
    whole = path.stat().st_size
    os.truncate(path, size)
    read = (board.slots[1].role, board.slots[1].hand.held(), board.slots[3].job, board.header.totals)

    assert (Role.FREE, [], "", (0, 0, 0)) == read
    assert (True, False, whole) == (board.restore_length(), board.restore_length(), path.stat().st_size)


def test_what_one_mapping_writes_another_reads(board, path):
    other = Board.open(path)

    board.slots[1].job = "app.mail"
    board.slots[1].hand.hold(leases(10))

    assert ("app.mail", leases(10)) == (other.slots[1].job, held_by(other.slots[1]))


def test_a_board_opened_to_be_read_cannot_be_written(board, path):
    with pytest.raises(OSError):
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


@each("nonsense", [-1.0, 1.5, 3.0, float("nan"), float("inf")])
def test_progress_that_no_worker_has_written_is_unknown(slot, nonsense):
    slot.progress = nonsense

    assert [None] == [one.progress for one in slot.shown()]


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
    slot.settled_incarnation = slot.incarnation

    slot.begin(Role.WORKER, 1, 1)

    assert slot.incarnation != slot.settled_incarnation


@pytest.fixture
def children() -> Children:
    return Children(is_ours=lambda pid: True)


def began(children: Children, slot: Slot, role: Role = Role.WORKER) -> Child:
    """A worker that has counted 1, 2 and 3."""
    slot.begin(role, 1, 1)
    child = Child(100 + slot.index, slot, role, 1, 1, forked_at=0.0, incarnation=slot.incarnation)
    children.add(child)
    child.write()
    slot.done, slot.failed, slot.released = 1, 2, 3
    return child


def ended(children: Children, child: Child, *, left: int = 0, settled: bool = False, held: int = 0) -> None:
    child.slot.hand.hold(leases(*[5] * held))
    child.slot.exited_cleanly, child.slot.settled_incarnation = left, child.incarnation if settled else 0
    children.remove(child.pid)
    children.mark_dead(child, status=0)
    children.free_settled()


def test_what_ended_lives_counted_is_kept(board, children):
    ended(children, began(children, board.slots[0]), settled=True)
    ended(children, began(children, board.slots[1]), left=1)
    began(children, board.slots[2])

    assert (2, 4, 6) == children.ended
    assert (3, 6, 9) == children.counted()
    assert [board.slots[2]] == board.of(Role.WORKER)


@pytest.mark.parametrize("facts", [{"held": 1}, {"held": 1, "left": 1}, {}])
def test_a_slot_is_kept_until_its_dead_are_settled(board, children, slot, facts):
    ended(children, began(children, slot), **facts)

    assert ([slot], True) == (board.of(Role.WORKER), children.has_unsettled)


def test_a_slot_whose_dead_left_with_empty_hands_is_free(board, children, slot):
    ended(children, began(children, slot), left=1)

    assert ([], False) == (board.of(Role.WORKER), children.has_unsettled)


@pytest.mark.parametrize(("killed", "kept"), [(Killed.STOP, False), (Killed.OVERDUE, True), (Killed.NOT, True)])
def test_a_template_that_the_master_ended_needs_no_word_and_one_that_died_does(board, children, slot, killed, kept):
    child = began(children, slot, Role.TEMPLATE)
    child.killed = killed
    ended(children, child)

    assert kept == bool(board.of(Role.WORKER, Role.TEMPLATE))


def test_a_free_slot_is_given_while_there_is_one(board, children):
    for slot in board.slots:
        assert slot is children.free_slot(board)
        began(children, slot)

    assert None is children.free_slot(board)


# What jobs write over it


def test_a_slot_that_is_written_over_is_not_given_away_and_is_written_anew(board, children, slot):
    child = began(children, slot)
    slot.clear()

    assert [child] == children.overwritten(now=100.0, retry_after=90.0)
    assert [] == children.overwritten(now=100.0, retry_after=90.0)
    assert child.facts == slot.facts
    assert board.slots[0] is children.free_slot(board)


NONSENSE = {
    "state": 7, "exited_cleanly": 2, "tag": -1, "reserve_sent_at": 200.0, "hand_number": 2**62,
    "current_index": -(2**63), "deadline": float("nan"),
    "lease_end": 300.0, "done": 2**63 - 1, "failed": -1, "released": -1, "rss": 2**50, "since": float("inf"),
}  # fmt: skip


@pytest.mark.parametrize("field", NONSENSE)
def test_what_its_process_cannot_have_written_is_seen(children, slot, field):
    child = began(children, slot)
    before = children.overwritten(now=100.0, retry_after=90.0)
    setattr(slot, field, NONSENSE[field])

    assert ([], [child]) == (before, children.overwritten(now=100.0, retry_after=90.0))


@given(raw=st.binary(min_size=Slot.size + 64, max_size=Slot.size + 64), fill=st.sampled_from([b"", b"\xff", b"\x7f"]))
@effort(200)
def test_whatever_a_slot_holds_it_can_be_read(tmp_path_factory, raw, fill):
    board = Board.create(tmp_path_factory.mktemp("board") / "board.1-1", capacity=2)
    children, slot = Children(is_ours=lambda pid: True), board.slots[0]
    child = began(children, slot)
    board.memory[slot.base : slot.base + len(raw)] = fill * len(raw) or raw
    board.memory[0 : Header.size] = (fill * len(raw) or raw)[: Header.size]

    assert json.dumps(overview("p", board).to_json(), allow_nan=False)
    assert title("p", State(slot.state), [slot], children.counted())
    assert 0 <= sum(children.counted()) < 2**60
    assert next_deadline(slot, 1.0) == next_deadline(slot, 1.0)  # a number
    assert 1 == len(slot.shown())
    for hand in slot.hands:
        with suppress(ValueError, OSError):
            hand.held()
    ended(children, child)


@pytest.mark.parametrize(
    ("turn", "renewed_hand", "renewed_end", "expected"),
    [(1, 0, 0.0, 100.0), (1, 1, 150.0, 150.0), (2, 1, 150.0, 100.0)],
)
def test_a_lease_ends_as_reserved_or_as_renewed_for_this_very_turn(slot, turn, renewed_hand, renewed_end, expected):
    slot.lease_end, slot.hand_number, slot.renewed_hand, slot.renewed_end = 100.0, turn, renewed_hand, renewed_end

    assert expected == slot.lease_deadline


# The hand


def test_a_hand_holds_what_it_was_given_in_its_order(slot):
    slot.hand.hold([*leases(1, 2), *leases(3, queue="hîgh")])

    assert [
        HeldJob(0, Lease("default", b"A"), Stage.RESERVED),
        HeldJob(1, Lease("default", b"BB"), Stage.RESERVED),
        HeldJob(2, Lease("hîgh", b"AAA"), Stage.RESERVED),
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
@effort(60)
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
