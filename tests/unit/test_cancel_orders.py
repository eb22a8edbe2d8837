"""An order to end a running job names one attempt, and demands the kill of no other's worker."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from queuepool.board import cancel_orders
from queuepool.board.board import Board, Killed, Role, Slot, State, next_deadline, overdue
from queuepool.board.cancelling import Came, Contrary, Ordered, cancel_here, order, running_on
from queuepool.board.held_jobs import Stage
from queuepool.board.lane_writer import LaneJobs, LaneWriter
from queuepool.payload.lease import Lease
from tests.support.samples import payload

NOW = time.monotonic()


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / "board.1", capacity=2)


@pytest.fixture
def slot(board: Board) -> Slot:
    """A worker at the first of two jobs."""
    slot = board.slots[0]
    board.allocate(slot)
    slot.begin(Role.WORKER, 1, 1)
    slot.hold([Lease("default", payload("a"), 7), Lease("default", payload("b"), 7)])
    begin(slot, 0, "a")
    return slot


def begin(slot: Slot, index: int, job_id: str) -> None:
    slot.state, slot.job, slot.job_id, slot.queue, slot.attempt = State.BUSY, "app.ok", job_id, "default", 1
    slot.current_index, slot.lease_end = index, time.monotonic() + 90
    slot.hand.mark(index, Stage.RUNNING)


def given(board: Board, job_id: str = "a", grace: float = 10.0):
    return cancel_here(board, job_id, by="ana@web", grace=grace, requeue=False)


def killed(slot: Slot, after: float) -> Killed | None:
    return overdue(slot, slot.cancel_at + after, grace=1.0)


def test_without_an_order_nobody_is_killed(slot):
    assert (None, 0.0) == (overdue(slot, time.monotonic(), 1.0), cancel_orders.kill_at(slot))


def test_a_worker_that_does_not_answer_is_killed_soon_and_one_that_obeys_after_the_grace(board, slot):
    assert given(board)
    assert (None, Killed.CANCELLED) == (killed(slot, 0.9), killed(slot, 1.1))
    assert slot.cancel_at + 0.9 < next_deadline(slot, 1.0) < slot.cancel_at + 1.1

    slot.cancel_obeyed = -slot.cancel_at
    assert Killed.CANCELLED == killed(slot, 0.0)
    slot.cancel_obeyed = slot.cancel_at
    assert (None, Killed.CANCELLED) == (killed(slot, 9.9), killed(slot, 10.1))


def test_a_plain_function_is_not_waited_for_unless_it_obeys(board, slot):
    slot.is_plain = 1
    ordered = given(board)
    assert Killed.CANCELLED == killed(slot, 0.0)
    cancel_orders.answer(slot, ordered.order, can_end=True)

    assert (None, Killed.CANCELLED) == (killed(slot, 9.9), killed(slot, 10.1))


def test_without_a_grace_nobody_is_waited_for(board, slot):
    assert given(board, grace=0.0)
    assert Killed.CANCELLED == killed(slot, 0.0)


@pytest.mark.parametrize("gone_on", ["next job", "next hand", "next life", "settling", "done"])
def test_once_the_attempt_is_over_nobody_is_killed_for_it(board, slot, gone_on):
    ordered = given(board)
    match gone_on:
        case "next job":
            slot.hand.mark(0, Stage.DONE)
            begin(slot, 1, "b")
        case "next hand":
            slot.hold([Lease("default", payload("a"), 7)])
            begin(slot, 0, "a")
        case "next life":
            at = slot.cancel_at, slot.cancel_life, slot.cancel_hand
            slot.begin(Role.WORKER, 1, 1)
            slot.hand_number = at[2]
            begin(slot, 0, "a")
            slot.cancel_at, slot.cancel_life, slot.cancel_hand = at
        case "settling":
            slot.lease_end = 0.0
        case "done":
            slot.hand.mark(0, Stage.DONE)

    assert None is overdue(slot, time.monotonic() + 60, 1.0)
    assert ordered
    assert Came.OF_IT != ordered.came


def test_it_is_given_only_for_a_job_that_runs(board, slot):
    assert [None, None] == [given(board, "b"), given(board, "c")]
    assert 0.0 == slot.cancel_at


def test_an_attempt_that_has_ended_since_it_was_found_gets_none(board, slot):
    [found] = running_on(board)
    slot.hand.mark(0, Stage.DONE)

    assert order(found, by="ana@web", grace=0.0, requeue=False) is None
    assert order(replace(found, life=found.life + 1), by="ana@web", grace=0.0, requeue=False) is None
    assert 0.0 == slot.cancel_at


def test_what_is_shown_of_another_job_is_not_believed(board, slot):
    """The texts of a slot may be half of the next job's."""
    slot.job_id = "c"

    assert given(board, "c") is None


def test_a_half_written_order_counts_for_nothing(board, slot):
    given(board)
    slot.cancel_at = 0.0  # the writer of the next one died here

    assert (None, None) == (cancel_orders.order_on(slot), overdue(slot, time.monotonic() + 60, 1.0))


def test_nonsense_on_the_board_kills_nobody(slot):
    for at, grace in ((math.nan, 0.0), (math.inf, 0.0), (-1.0, 0.0)):
        slot.cancel_at, slot.cancel_grace, slot.cancel_index = at, grace, 10**9
        assert 0.0 == cancel_orders.kill_at(slot)


def test_what_came_of_it(board, slot):
    ordered = given(board)
    assert ordered
    assert None is ordered.came
    slot.cancel_done = slot.cancel_at

    assert Came.OF_IT == ordered.came


def test_what_came_of_it_is_known_when_the_next_worker_has_the_slot(board, slot):
    """As soon as a dead worker is settled: whoever cancels looks now and then."""
    ordered = given(board)
    slot.dead = 1
    cancel_orders.carried_out(slot, ordered.order)
    slot.begin(Role.WORKER, 1, 1)
    assert Came.OF_IT == ordered.came
    slot.hold([Lease("default", payload("a"), 7)])
    begin(slot, 0, "a")
    late = given(board)
    slot.begin(Role.WORKER, 1, 1)

    assert Came.TOO_LATE == late.came


def test_a_second_order_hastens_the_first_and_both_are_carried_out(board, slot):
    first = given(board)
    slot.cancel_obeyed = slot.cancel_at
    second, third = given(board, grace=0.0), given(board, grace=60.0)

    assert Killed.CANCELLED == overdue(slot, time.monotonic(), 1.0)
    cancel_orders.carried_out(slot, cancel_orders.order_on(slot))
    assert [Came.OF_IT] * 3 == [first.came, second.came, third.came]


def test_a_second_order_that_wants_something_else_is_refused_and_the_first_stands(board, slot):
    first = given(board)
    stands = cancel_orders.order_on(slot)
    second = cancel_here(board, "a", by="jo@web", grace=0.0, requeue=True)

    assert isinstance(second, Contrary)
    assert "ana@web has ordered to record it as failed, and that stands" == str(second)
    assert (first.order, None) == (stands, overdue(slot, stands.at + 0.1, 1.0))
    assert stands == cancel_orders.order_on(slot)


def test_a_job_that_was_told_to_end_by_itself_stays_told(board, slot):
    """As it ends there is nothing left to tell, and the worker looks once more."""
    ordered = given(board)
    for can_end in (True, False):
        cancel_orders.answer(slot, ordered.order, can_end=can_end)

    assert (None, Killed.CANCELLED) == (killed(slot, 9.9), killed(slot, 10.1))


def test_side_by_side_each_lane_has_one_order_that_stands_and_is_hastened(tmp_path):
    board = Board.create(tmp_path / "board.1", capacity=2, lanes=2).mapped()
    slot = board.slots[0]
    board.allocate(slot)
    slot.begin(Role.WORKER, 1, 1)
    slot.state = State.BUSY
    writer = LaneWriter(slot.lanes)
    for lane, job_id in enumerate("ab"):
        writer.take(lane, Lease("default", payload(job_id), 7), time.monotonic() + 90)
        kind = LaneJobs("", "app.ok", is_plain=lane == 0)
        writer.begins(lane, kind, job_id=job_id, attempt=1, since=1e9, deadline=0.0)
    first, other = given(board), given(board, "b")
    assert Killed.CANCELLED == overdue(slot, first.order.at, 1.0)  # of a plain function no answer is needed
    writer.may_end(0)
    assert None is overdue(slot, first.order.at + 0.1, 1.0)
    for lane in (0, 1):
        for can_end in (True, False):
            cancel_orders.answer(slot, slot.lanes.cancelled(lane), can_end=can_end)
    contrary = cancel_here(board, "a", by="jo@web", grace=0.0, requeue=True)
    assert isinstance(contrary, Contrary)
    assert None is overdue(slot, first.order.at + 9.9, 1.0)
    second = given(board, grace=0.0)

    assert Killed.CANCELLED == overdue(slot, time.monotonic(), 1.0)
    cancel_orders.carried_out(slot, slot.lanes.cancelled(0))
    assert [Came.OF_IT, Came.OF_IT, None] == [first.came, second.came, other.came]
    slot.begin(Role.WORKER, 1, 1)
    assert [Came.OF_IT, Came.OF_IT, Came.TOO_LATE] == [first.came, second.came, other.came]


def test_an_order_to_the_next_attempt_takes_the_place_of_the_last_ones(board, slot):
    first = given(board)
    slot.hand.mark(0, Stage.DONE)
    begin(slot, 1, "b")
    second = cancel_here(board, "b", by="jo@web", grace=10.0, requeue=True)

    assert isinstance(second, Ordered)
    assert second.order == cancel_orders.order_for(slot, 1)
    assert Came.TOO_LATE == first.came
