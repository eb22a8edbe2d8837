"""A dead process is replaced at once or after a backoff: plans from plain facts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from queuepool.board.board import Board, Killed, Role, State
from queuepool.master.children import Child
from queuepool.master.respawn import Respawn, RespawnDelay

Add = Callable[..., Child]


@pytest.fixture
def add(tmp_path: Path) -> Add:
    """A process that began at the time 0, if not said otherwise."""
    board = Board.create(tmp_path / "board", capacity=32)
    slots = iter(board.slots)

    def add(
        number: int, *, ready: bool = True, role: Role = Role.WORKER, stop_sent: bool = False, forked_at: float = 0.0
    ) -> Child:
        slot = next(slots)
        slot.state = State.BUSY if ready else State.STARTING
        found = Child(100 + slot.index, slot, role, number, generation=1, forked_at=forked_at, stop_sent=stop_sent)
        found.status = 1 << 8  # should it end: by an error
        return found

    return add


# Rests


def test_the_first_worker_need_not_wait():
    assert RespawnDelay().is_over(0.0)


def test_rests_grow_from_failure_to_failure_up_to_a_minute():
    rests, now, seconds = RespawnDelay(), 0.0, []
    for _ in range(10):
        seconds.append(rests.failed(now))
        now += seconds[-1]

    assert [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0] == seconds


def test_the_code_of_a_restart_need_not_wait_for_what_the_last_code_did(add):
    respawn = Respawn(give_up=1.0)
    for number in range(8):
        respawn.died(child := add(1, ready=False), float(100 * number))
        child.status = 3 << 8
    waits = not respawn.is_over(Role.WORKER, 1, 701.0)
    respawn.reset_boots()

    assert waits
    assert respawn.is_over(Role.WORKER, 1, 701.0)
    assert respawn.hopeless(800.0, {Role.STEWARD, Role.TEMPLATE}) is None


def test_a_pool_that_fails_for_weeks_still_counts():
    rests, now = RespawnDelay(), 0.0
    for _ in range(3000):
        now += rests.failed(now)

    assert 60.0 == rests.failed(now)


def test_a_rest_ends_when_it_is_over():
    rests = RespawnDelay()
    rests.failed(10.0)

    assert (False, True) == (rests.is_over(10.4), rests.is_over(10.5))


def test_many_failures_at_once_count_as_one():
    rests = RespawnDelay()
    rests.failed(10.0)

    assert pytest.approx([0.4, 0.4]) == [rests.failed(10.1), rests.failed(10.1)]
    assert rests.is_over(10.5)


def test_a_worker_that_came_to_work_ends_the_growing():
    rests = RespawnDelay()
    rests.failed(0.0)
    rests.failed(10.0)
    rests.succeeded()

    assert 0.5 == rests.failed(20.0)


# Deaths


def test_a_death_before_the_work_began_calls_for_a_rest_and_a_stewards_soon_after(add):
    respawn = Respawn()

    assert (0.5, "never became ready") == respawn.died(add(1, ready=False), now=99.0)
    assert (0.5, "died young") == respawn.died(add(0, role=Role.STEWARD), now=9.9)
    assert 0.0 == respawn.died(add(0, role=Role.STEWARD), now=99.0)[0]


@pytest.mark.parametrize("status", [signal.SIGKILL, 0], ids=["kills", "tells to leave"])
def test_a_steward_that_somebody_ends_has_not_failed(add, status):
    respawn = Respawn()
    for _ in range(9):
        steward = add(0, role=Role.STEWARD)
        steward.status = status
        assert 0.0 == respawn.died(steward, now=0.1)[0]

    assert not respawn.is_failing


def test_stewards_that_work_for_a_while_and_die_rest_longer_and_longer_until_one_lives(add):
    respawn, now, rests = Respawn(), 0.0, []
    for _ in range(4):
        steward = add(0, role=Role.STEWARD, forked_at=now)
        respawn.became_ready(steward)
        now += 5.0
        respawn.watch([steward], now)
        rests.append(respawn.died(steward, now)[0])
        now += rests[-1]
    failing = respawn.is_failing
    respawn.watch([add(0, role=Role.STEWARD, forked_at=now)], now + 10.0)

    assert [0.5, 1.0, 2.0, 4.0] == rests
    assert (True, False) == (failing, respawn.is_failing)


def test_who_was_told_to_leave_has_not_failed(add):
    assert 0.0 == Respawn().died(add(1, ready=False, stop_sent=True), now=0.1)[0]


def test_the_first_young_deaths_of_a_number_cost_nothing_and_then_it_rests_longer_and_longer(add):
    respawn, now, rests = Respawn(), 0.0, []
    for _ in range(12):
        rests.append(respawn.died(add(1, forked_at=now), now)[0])
        now += rests[-1]

    assert [0.0] * 5 + [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0] == pytest.approx(rests)


def test_who_is_killed_for_nothing_has_no_part_in_a_loop(add):
    respawn = Respawn()
    for _ in range(9):
        idle = add(1)
        idle.slot.state = State.IDLE
        assert 0.0 == respawn.died(idle, now=0.1)[0]


def test_who_is_killed_while_it_boots_is_replaced_at_once_a_few_times(add):
    respawn, rests = Respawn(), []
    for _ in range(7):
        child = add(1, ready=False)
        child.status = signal.SIGKILL
        rests.append(respawn.died(child, now=10.0 * (1 + len(rests)))[0])

    assert [0.0] * 5 + [0.1, 0.2] == pytest.approx(rests)


def test_one_number_that_rests_keeps_nobody_else_waiting(add):
    respawn = Respawn()
    for _ in range(6):
        respawn.died(add(1), now=0.1)

    assert not respawn.is_over(Role.WORKER, 1, 0.1)
    assert respawn.is_over(Role.WORKER, 2, 0.1)
    assert respawn.is_over(Role.STEWARD, 0, 0.1)


@pytest.mark.parametrize("reason", ["done", "left", "killed to stop", "old"])
def test_a_death_that_is_no_loop_ends_the_growing(add, reason):
    respawn = Respawn()
    for _ in range(6):
        respawn.died(add(1), now=0.1)
    child = add(1)
    child.slot.done, child.slot.exited_cleanly = int(reason == "done"), int(reason == "left")
    child.killed = Killed.STOP if reason == "killed to stop" else Killed.NOT

    assert 0.0 == respawn.died(child, now=6.0 if reason == "old" else 0.2)[0]
    assert respawn.is_over(Role.WORKER, 1, 0.2)
    assert 0.0 == respawn.died(add(1), now=0.3)[0]


# Giving up


def test_workers_that_never_come_to_work_are_hopeless_after_a_while(add):
    respawn = Respawn(give_up=10.0)
    respawn.died(add(1, ready=False), now=5.0)
    respawn.died(add(1, ready=False), now=12.0)

    assert (None, Role.WORKER) == (respawn.hopeless(14.9, ()), respawn.hopeless(15.0, ()))


def test_a_steward_that_never_comes_is_hopeless_even_while_workers_work(add):
    respawn = Respawn(give_up=10.0)
    respawn.died(add(0, role=Role.STEWARD, ready=False), now=5.0)

    assert Role.STEWARD == respawn.hopeless(15.0, {Role.WORKER})


def test_stewards_that_come_to_work_and_die_of_it_are_hopeless_too_but_not_the_one_that_works(add):
    respawn = Respawn(give_up=10.0)
    for forked_at in (0.0, 5.0):
        steward = add(0, role=Role.STEWARD, forked_at=forked_at)
        respawn.became_ready(steward)
        respawn.died(steward, now=forked_at + 2.0)

    assert (None, Role.STEWARD) == (respawn.hopeless(11.9, ()), respawn.hopeless(12.0, ()))
    assert None is respawn.hopeless(12.0, {Role.STEWARD})


def test_a_template_that_never_comes_is_hopeless_unless_another_forks_the_workers(add):
    respawn = Respawn(give_up=10.0)
    respawn.died(add(0, role=Role.TEMPLATE, ready=False), now=5.0)

    assert Role.TEMPLATE == respawn.hopeless(15.0, ())
    assert None is respawn.hopeless(15.0, {Role.TEMPLATE})
    assert None is respawn.hopeless(15.0, {Role.WORKER})


def test_workers_that_never_come_are_hopeless_whoever_forks_them(add):
    respawn = Respawn(give_up=10.0)
    respawn.died(add(1, ready=False), now=5.0)

    assert Role.WORKER == respawn.hopeless(15.0, {Role.TEMPLATE})


def test_one_that_came_to_work_is_hope(add):
    respawn = Respawn(give_up=10.0)
    respawn.died(add(1, ready=False), now=5.0)
    respawn.became_ready(add(2))

    assert None is respawn.hopeless(99.0, ())


def test_without_a_limit_there_is_always_hope(add):
    respawn = Respawn(give_up=0.0)
    respawn.died(add(1, ready=False), now=5.0)

    assert None is respawn.hopeless(1e9, ())


def test_a_pool_can_do_without_its_web_process(add):
    respawn = Respawn(give_up=10.0)
    for _ in range(3):
        respawn.died(add(0, role=Role.WEB, ready=False), now=5.0)

    assert not respawn.is_over(Role.WEB, 0, 5.0)
    assert None is respawn.hopeless(99.0, ())
    assert not respawn.is_failing


def test_a_web_process_does_not_show_that_modules_import_and_its_failures_end_as_a_stewards(add):
    respawn = Respawn()
    respawn.became_ready(add(0, role=Role.WEB))
    rests = [respawn.died(add(0, role=Role.WEB), now=1.0)[0], respawn.died(add(0, role=Role.WEB), now=2.0)[0]]
    respawn.watch([add(0, role=Role.WEB)], now=12.0)

    assert not respawn.has_booted
    assert [0.5, 1.0] == rests
    assert 0.5 == respawn.died(add(0, role=Role.WEB, forked_at=12.0), now=13.0)[0]
