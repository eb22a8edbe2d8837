"""Which children are to be forked, stopped or killed: plans from plain facts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from queuepool.board.board import LEASE_MARGIN, Board, Killed, Role, Slot, State, next_deadline, overdue
from queuepool.board.fields import Totals
from queuepool.board.status import title
from queuepool.master.children import Child, Children, Replacements
from queuepool.master.service_manager import is_being_replaced

GRACE = 1.0
#: pids from here on are of other families
FOREIGN = 10_000
Add = Callable[..., Child]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board.create(tmp_path / "board", capacity=32)


@pytest.fixture
def slot(board: Board) -> Slot:
    return board.slots[0]


@pytest.fixture
def children() -> Children:
    return Children(is_ours=lambda pid: pid < FOREIGN)


@pytest.fixture
def add(board: Board, children: Children) -> Add:
    """A living process; its pid is its place on the board."""
    places = iter(enumerate(board.slots, 100))

    def add(number: int, generation: int = 1, *, ready: bool = True, role: Role = Role.WORKER) -> Child:
        pid, slot = next(places)
        slot.state = State.IDLE if ready else State.STARTING
        child = Child(pid, slot, role, number, generation, forked_at=float(pid))
        children.add(child)
        return child

    return add


# Who is there


def test_children_are_known_by_their_pid(children, add):
    first, second = add(1), add(2)

    assert first is children.remove(first.pid)
    assert [second] == list(children)


def test_a_stranger_is_nobodys_child(children):
    assert None is children.remove(1)
    assert not children


def test_the_steward_is_no_worker(children, add):
    steward, worker = add(0, role=Role.STEWARD), add(1)

    assert (steward, [worker]) == (children.steward(), children.workers())


def test_children_may_leave_while_they_are_counted(children, add):
    for number in (1, 2, 3):
        add(number)

    for child in children:
        children.remove(child.pid)

    assert not children


# Templates


def expect(children: Children, slot: Slot, number: int, generation: int = 1) -> Child:
    slot.begin(Role.WORKER, number, generation)
    child = Child(0, slot, Role.WORKER, number, generation, forked_at=0.0)
    children.expect(child)
    return child


def test_templates_are_the_newest_first_without_those_that_were_ended(children, add):
    elder, younger, ended = (add(0, generation, role=Role.TEMPLATE) for generation in (1, 2, 3))
    ended.stop_sent = True

    assert [younger, elder] == children.templates()


def test_a_worker_that_is_to_be_forked_is_not_missing_but_nobody_yet(children, slot):
    expect(children, slot, 1)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=1, generation=1)
    assert ([], [], []) == (list(children), children.workers(), children.newcomers())


def test_an_expected_worker_is_known_from_when_its_pid_is_written_down(children, slot):
    child = expect(children, slot, 1)
    slot.pid = 4711

    assert 4711 in children
    assert [child] == children.workers()
    assert child is children.remove(4711)


def test_a_newcomer_is_one_until_its_birth_is_written_down(children, slot):
    child = expect(children, slot, 1)
    slot.pid = 4711
    before = children.newcomers()
    child.start_time = 1

    assert ([child], []) == (before, children.newcomers())


def test_with_a_template_goes_who_was_not_forked_yet_and_nobody_else(children, add, board):
    template = add(0, role=Role.TEMPLATE)
    missed, forked, others = board.slots[10:13]
    expect(children, missed, 1)
    kept = expect(children, forked, 2)
    expect(children, others, 3, generation=2)
    forked.pid = 4711
    children.remove(template.pid)

    assert [Role.FREE, Role.WORKER, Role.WORKER] == [slot.role for slot in (missed, forked, others)]
    assert [kept] == children.workers()
    assert Replacements(spawn=[1], retire=[]) == children.plan(target=3, generation=1)


# The plan


def test_a_pool_begins_with_a_worker_for_each_number(children):
    assert Replacements(spawn=[1, 2, 3], retire=[]) == children.plan(target=3, generation=1)


def test_a_full_pool_needs_nobody(children, add):
    for number in (1, 2, 3):
        add(number)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=3, generation=1)


def test_a_worker_that_is_missing_is_replaced(children, add):
    add(1)
    add(3)

    assert Replacements(spawn=[2], retire=[]) == children.plan(target=3, generation=1)


def test_a_worker_that_starts_is_not_started_again(children, add):
    add(1, ready=False)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=1, generation=1)


def test_in_a_restart_one_number_is_replaced_at_a_time(children, add):
    for number in (1, 2, 3):
        add(number)

    assert Replacements(spawn=[1], retire=[]) == children.plan(target=3, generation=2)


def test_while_a_replacement_starts_nobody_leaves_and_nobody_else_is_replaced(children, add):
    add(1)
    add(2)
    add(1, 2, ready=False)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=2, generation=2)


def test_an_elder_leaves_when_its_replacement_is_ready_and_the_next_number_follows(children, add):
    elder = add(1)
    add(2)
    add(1, 2)

    assert Replacements(spawn=[2], retire=[elder]) == children.plan(target=2, generation=2)


def test_a_second_restart_during_the_first_replaces_all_that_are_older(children, add):
    elder, middle = add(1, 1), add(1, 2)
    add(1, 3)

    plan = children.plan(target=1, generation=3)

    assert ([], {elder.pid, middle.pid}) == (plan.spawn, {child.pid for child in plan.retire})


def test_a_replacement_that_cannot_boot_costs_nobody(children, add):
    add(1)
    add(2)
    broken = add(1, 2, ready=False)
    children.remove(broken.pid)

    assert Replacements(spawn=[1], retire=[]) == children.plan(target=2, generation=2)


def test_an_elder_that_died_meanwhile_is_not_missed(children, add):
    add(1, 2, ready=False)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=1, generation=2)


def test_a_missing_worker_is_started_also_while_another_is_replaced(children, add):
    add(1)
    add(1, 2, ready=False)

    assert Replacements(spawn=[2], retire=[]) == children.plan(target=2, generation=2)


def test_a_restart_ends_with_everybody_replaced(children, add):
    for number in (1, 2, 3):
        add(number)
    most = 0
    for _ in range(10):
        plan = children.plan(target=3, generation=2)
        for child in plan.retire:
            children.remove(child.pid)
        for number in plan.spawn:
            add(number, 2)
        most = max(most, len(children.workers()))
        assert len(children.workers()) >= 3

    assert [(1, 2), (2, 2), (3, 2)] == sorted((child.number, child.generation) for child in children)
    assert 4 == most


def drains(child: Child) -> Child:
    child.slot.state = State.DRAINING
    return child


def test_a_worker_that_takes_no_more_jobs_is_replaced_at_once_also_while_another_number_is(children, add):
    add(1)
    add(1, 2, ready=False)
    drains(add(2))

    assert Replacements(spawn=[2], retire=[]) == children.plan(target=2, generation=2)


@pytest.mark.parametrize("ready", [False, True])
def test_a_worker_that_takes_no_more_jobs_is_not_told_to_stop_for_its_successor(children, add, ready):
    drains(add(1))
    add(1, ready=ready)

    assert Replacements(spawn=[], retire=[]) == children.plan(target=1, generation=1)


def test_a_number_whose_two_workers_take_no_more_jobs_waits_for_the_first_to_leave(children, add):
    drains(add(1))
    successor = drains(add(1))
    both = children.plan(target=1, generation=1), children.plan(target=1, generation=2)
    children.remove(successor.pid)

    assert [Replacements(spawn=[], retire=[])] * 2 == list(both)
    assert Replacements(spawn=[1], retire=[]) == children.plan(target=1, generation=1)


def test_in_a_restart_a_number_waits_for_a_worker_that_takes_no_more_jobs(children, add):
    leaving = drains(add(1))
    add(1)
    before = children.plan(target=1, generation=2)
    children.remove(leaving.pid)

    assert Replacements(spawn=[], retire=[]) == before
    assert Replacements(spawn=[1], retire=[]) == children.plan(target=1, generation=2)


def test_a_worker_of_old_code_that_takes_no_more_jobs_is_told_to_stop_once_its_successor_is_ready(children, add):
    elder = drains(add(1))
    add(1, 2)

    assert Replacements(spawn=[], retire=[elder]) == children.plan(target=1, generation=2)


def test_a_worker_that_takes_no_more_jobs_counts_as_one_that_runs_them(children, add):
    elder = drains(add(1)).slot
    elder.generation = 1
    successor = add(1, 2).slot
    successor.number, successor.generation = 1, 2

    assert " busy=1 " in title("default", State.RUNNING, [elder, successor], Totals())
    assert not is_being_replaced(2, 1, [elder, successor])


def test_a_pool_that_grows_again_has_no_more_than_its_most_workers_with_those_that_leave(children, add):
    add(1)
    leaving = [add(2), add(3)]
    for child in leaving:
        child.stop_sent = True
    full, with_room = children.plan(target=3, generation=1, most=3), children.plan(target=3, generation=1, most=4)
    children.remove(leaving[0].pid)

    assert ([], [2]) == (full.spawn, with_room.spawn)
    assert [2] == children.plan(target=3, generation=1, most=3).spawn


def test_a_smaller_pool_lets_the_highest_numbers_go(children, add):
    kept = add(1)
    gone = [add(2), add(3, ready=False)]

    plan = children.plan(target=1, generation=1)

    assert Replacements(spawn=[], retire=gone) == plan
    assert kept not in plan.retire


def test_a_pool_of_none_lets_everybody_go(children, add):
    gone = [add(1), add(2)]

    assert Replacements(spawn=[], retire=gone) == children.plan(target=0, generation=1)


def test_the_steward_is_never_in_a_plan(children, add):
    add(0, role=Role.STEWARD)

    assert Replacements(spawn=[1], retire=[]) == children.plan(target=1, generation=1)


# Deadlines


def test_without_a_deadline_nobody_is_overdue(slot):
    assert None is overdue(slot, 10**9, GRACE)
    assert float("inf") == next_deadline(slot, GRACE)


def test_a_worker_past_its_deadline_and_the_grace_is_overdue(slot):
    slot.deadline = 100.0

    assert None is overdue(slot, 100.9, GRACE)
    assert Killed.OVERDUE == overdue(slot, 101.0, GRACE)
    assert 101.0 == next_deadline(slot, GRACE)


@pytest.mark.parametrize(
    ("state", "lease_end", "why"),
    [
        (State.STARTING, 0.0, Killed.OVERDUE),  # its modules are imported
        (State.BUSY, 200.0, Killed.OVERDUE),
        (State.BUSY, 0.0, Killed.STALLED),  # its job has ended
        (State.IDLE, 0.0, Killed.STALLED),
        (State.RUNNING, 0.0, Killed.STALLED),  # a steward
    ],
)
def test_the_reason_says_whether_a_job_ran(slot, state, lease_end, why):
    slot.state, slot.deadline, slot.lease_end = state, 100.0, lease_end

    assert why == overdue(slot, 101.0, GRACE)
    assert ("no job ran" in why.reason) == (why == Killed.STALLED)


def test_who_was_silent_while_the_master_did_not_run_either_has_time_to_show_that_it_lives(children, add):
    """A host that is frozen wakes up with all its deadlines in the past."""
    silent, late, lost = add(1), add(2), add(3)
    silent.slot.deadline = late.slot.deadline = lost.slot.lease_end = 100.0
    late.slot.lease_end = 1000.0

    def killed(now: float) -> dict[int, Killed]:
        return {child.number: why for child, why in children.overdue(now, GRACE) if why}

    assert {} == killed(90.0)
    assert {2: Killed.OVERDUE, 3: Killed.LEASE} == killed(200.0)
    assert 202.0 == children.next_deadline(GRACE)
    assert {2: Killed.OVERDUE, 3: Killed.LEASE} == killed(201.9)
    assert {1: Killed.STALLED, 2: Killed.OVERDUE, 3: Killed.LEASE} == killed(202.0)


def test_a_master_that_ticks_kills_who_is_silent(children, add):
    add(1).slot.deadline = 100.0

    assert [None, Killed.STALLED] == [why for now in (100.75, 101.0) for _, why in children.overdue(now, GRACE)]


def test_a_worker_is_dead_before_its_lease_ends(slot):
    slot.lease_end = 100.0

    assert None is overdue(slot, 100.0 - LEASE_MARGIN - 0.1, GRACE)
    assert Killed.LEASE == overdue(slot, 100.0 - LEASE_MARGIN, GRACE)
    assert 100.0 - LEASE_MARGIN == next_deadline(slot, GRACE)


def test_a_renewed_lease_counts_to_its_new_end(slot):
    slot.hand_number, slot.lease_end, slot.renewed_hand, slot.renewed_end = 5, 100.0, 5, 130.0

    assert None is overdue(slot, 100.0, GRACE)
    assert Killed.LEASE == overdue(slot, 130.0, GRACE)


def test_a_renewal_of_an_earlier_turn_does_not_count(slot):
    slot.hand_number, slot.lease_end, slot.renewed_hand, slot.renewed_end = 6, 100.0, 5, 130.0

    assert Killed.LEASE == overdue(slot, 100.0, GRACE)


@pytest.mark.parametrize(("deadline", "lease_end", "earliest"), [(50.0, 100.0, 51.0), (150.0, 100.0, 99.5)])
def test_the_earlier_of_two_deadlines_is_the_next(slot, deadline, lease_end, earliest):
    slot.deadline, slot.lease_end = deadline, lease_end

    assert earliest == next_deadline(slot, GRACE)


@pytest.mark.thorough("60,000 turns; test_a_renewal_of_an_earlier_turn_does_not_count has the moment that matters")
def test_nobody_is_killed_for_what_its_worker_changes_while_the_master_looks(slot):
    """A worker that goes from job to job, with and without limits, beside a master that looks all the time."""
    slot.renewed_hand, slot.renewed_end = 1, 1e9
    done = threading.Event()

    def work() -> None:
        for turn in range(2, 60_000):
            slot.lease_end, slot.hand_number = 0.0, turn
            slot.lease_end, slot.deadline = 1e9, 1e9
            slot.deadline = 0.0
        done.set()

    # As often as Python can, so that the one is interrupted anywhere in the other.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    worker = threading.Thread(target=work)
    worker.start()
    killed = {overdue(slot, 100.0, GRACE) for _ in iter(done.is_set, True)}
    worker.join()
    sys.setswitchinterval(interval)

    assert killed <= {None}
