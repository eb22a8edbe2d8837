"""Workers reserve jobs ahead: how many, and without making any of them wait for a slow neighbour."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.board.board import Board, Role, State
from queuepool.worker.prefetch_size import MOST, PrefetchSize
from tests.support.eventually import eventually
from tests.support.processes import go_on, halt
from tests.support.scenarios import finish_beside_a_stuck_job

QUICK, SLOW = 0.00001, 1.0
#: seconds that a quick job takes if it has to wait for a processor, and a reserve then
PREEMPTED, CROWDED = 0.02, 0.03


def reserves(prefetch_size: PrefetchSize, seconds: float, size: int = 300) -> list[int]:
    """How many are reserved each time, while every job takes so long."""
    found = []
    for _ in range(12):
        found.append(prefetch_size.ahead())
        for _ in range(found[-1]):
            prefetch_size.took(seconds, size)
    return found


# How many


def test_quick_jobs_are_reserved_twice_as_many_each_time():
    found = reserves(PrefetchSize(0), QUICK)

    assert 1 == found[0]
    assert MOST == found[-1]
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(found))


def test_after_one_slow_job_the_next_is_reserved_alone():
    prefetch_size = PrefetchSize(0)
    reserves(prefetch_size, QUICK)

    prefetch_size.took(SLOW, 300)
    assert 1 == prefetch_size.ahead()


def test_while_some_are_parked_twice_as_many_are_reserved_however_long_jobs_take():
    prefetch_size = PrefetchSize(0)
    prefetch_size.took(SLOW, 300)

    found = [prefetch_size.parked() for _ in range(12)]
    assert [2, 4, 8] == found[:3]
    assert MOST == found[-1]
    assert 1 == prefetch_size.ahead()


def test_a_fixed_number_is_kept_while_some_are_parked():
    prefetch_size = PrefetchSize(3)

    assert 0 == prefetch_size.parked()
    assert 3 == prefetch_size.ahead()


def test_after_a_time_without_jobs_the_first_is_reserved_alone():
    prefetch_size = PrefetchSize(0)
    reserves(prefetch_size, QUICK)

    prefetch_size.start_over()
    assert 1 == prefetch_size.ahead()


def test_large_payloads_are_not_piled_up():
    assert 1 == reserves(PrefetchSize(0), QUICK, size=5_000_000)[-1]


def test_a_fixed_number_is_what_is_reserved():
    assert {7} == set(reserves(PrefetchSize(7), SLOW))


def crowded() -> PrefetchSize:
    """On a machine where each reserve takes long; as many quick jobs as possible are held."""
    prefetch_size = PrefetchSize(0)
    for _ in range(12):
        prefetch_size.waited(CROWDED)
    reserves(prefetch_size, QUICK)
    return prefetch_size


def test_on_a_crowded_machine_one_quick_job_that_waited_for_a_processor_does_not_make_the_next_be_reserved_alone():
    prefetch_size = crowded()

    prefetch_size.took(PREEMPTED, 300)
    assert 2 <= prefetch_size.ahead()
    assert [MOST] * 4 == reserves(prefetch_size, QUICK)[-4:]


def test_on_a_crowded_machine_where_each_batch_has_such_a_job_batches_stay_large():
    prefetch_size, found = crowded(), []
    for _ in range(12):
        found.append(prefetch_size.ahead())
        prefetch_size.took(PREEMPTED, 300)
        for _ in range(found[-1]):
            prefetch_size.took(QUICK, 300)

    assert [MOST] * 12 == found


def test_on_a_crowded_machine_a_slow_job_still_counts_at_once():
    prefetch_size = crowded()

    prefetch_size.took(SLOW, 300)
    assert 1 == prefetch_size.ahead()


@pytest.mark.parametrize(("waited", "held"), [(0.0, 5), (0.001, 5), (0.02, 40), (0.05, MOST), (5.0, MOST)])
def test_jobs_of_a_millisecond_are_held_for_two_reserves_and_not_for_less_than_five(waited, held):
    prefetch_size = PrefetchSize(0)
    for _ in range(60):
        prefetch_size.waited(waited)

    assert held - 1 <= reserves(prefetch_size, 0.001)[-1] <= held


def test_however_long_a_reserve_takes_no_more_is_held_than_is_done_while_one_may_wait_behind_a_slow_job():
    prefetch_size = PrefetchSize(0)
    for _ in range(12):
        prefetch_size.waited(30.0)

    assert 4 == reserves(prefetch_size, 0.1 / 4.5)[-1]


def test_a_reserve_that_took_long_once_is_forgotten():
    prefetch_size = PrefetchSize(0)
    prefetch_size.waited(5.0)
    for _ in range(40):
        prefetch_size.waited(0.0001)

    assert 1 == reserves(prefetch_size, 0.004)[-1]


@given(st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(0, 2**24)), max_size=50))
def test_there_is_always_a_number(jobs):
    prefetch_size = PrefetchSize(0)
    for seconds, size in jobs:
        prefetch_size.took(seconds, size)
        prefetch_size.waited(seconds)
        assert 1 <= prefetch_size.ahead() <= MOST


# Behind a slow one


def test_what_waits_behind_a_job_that_is_stuck_in_c_is_done_by_another_worker(site):
    finish_beside_a_stuck_job(site)

    assert {1} == {line["attempt"] for line in site.trail(event="start")}


def test_what_waits_behind_a_slow_job_is_back_at_the_head_in_its_order_with_its_attempts(site):
    tags = [str(number) for number in range(8)]
    for tag in tags:
        site.push("until", tag=tag, gate=str(site.path / "gate"))
    with site.pool("--workers", "1", "--reserve-ahead", "8"):
        eventually(lambda: (7, 1) == (site.queue.sizes().ready, site.queue.sizes().reserved))
        site.push("ok", tag="last")
        (site.path / "gate").touch()
        eventually(lambda: 9 == len(site.trail(event="end")))

    assert [*tags, "last"] == [line["tag"] for line in site.trail(event="start")]
    assert {1} == {line["attempt"] for line in site.trail(event="start")}


def test_a_killed_worker_leaves_what_it_had_not_begun_as_it_was_and_what_was_done_alone(site):
    site.push("ok", tag="before")
    site.push("kill", maxTries=1)
    site.push("ok", tag="after")
    with site.pool("--workers", "1", "--reserve-ahead", "8"):
        eventually(lambda: 2 == len(site.trail(event="end")))
        eventually(lambda: 0 == site.queue.size())

    assert ["before", "after"] == [line["tag"] for line in site.trail(event="end")]
    assert {1} == {line["attempt"] for line in site.trail(event="start")}


def test_a_stop_puts_back_what_was_not_begun(site):
    for number in range(8):
        site.push("until", tag=str(number), gate=str(site.path / "gate"))
    with site.pool("--workers", "1", "--reserve-ahead", "8") as pool:
        eventually(lambda: site.trail(event="start"))
        pool.signal(signal.SIGTERM)
        eventually(lambda: pool.pids("^queuepool: master .* draining"))
        (site.path / "gate").touch()
        assert 0 == pool.wait()

    done = len(site.trail(event="end"))  # one more may have begun before its worker heard of the stop
    assert (8 - done, 0) == (site.queue.sizes().ready, site.queue.sizes().reserved)
    assert done in (1, 2)


@pytest.mark.thorough("the next test has a timer that its job had taken")
def test_a_timer_that_a_job_has_left_running_does_not_end_the_next_one(site):
    site.push("timer", seconds=1.0)  # longer than a busy machine takes to the end of this job
    site.push("sleep", seconds=1.3)
    with site.pool("--workers", "1", "--reserve-ahead", "8", "--timeout", "0"):
        eventually(lambda: 2 == len(site.trail(event="end")))

    assert 2 == len(site.trail(event="start"))


def test_a_timer_that_a_job_has_taken_is_set_again_for_the_next_one(site):
    site.push("timer", seconds=0)
    site.push("hang_in_c")
    with site.pool("--workers", "1", "--reserve-ahead", "8", "--timeout", "1", "--grace", "60") as pool:
        eventually(lambda: site.trail(event="after_failed"))

    assert "SIGALRM" in pool.log()  # it was the kernel, not the master's second look


# Asked for before the hand is empty: of four, when two are left


def have_asked(site) -> list[bool]:
    """Of each busy worker, whether it holds jobs that it has not heard of; an idle one always may, while it waits."""
    [path] = (path for path in (site.path / "run").rglob("board.*") if path.name.count(".") == 1)
    busy = [slot for slot in Board.open(path).of(Role.WORKER) if slot.state == State.BUSY]
    return [bool(slot.reserve_sent_at) for slot in busy]


def push_quick_ones_around(site, mode: str, **options) -> None:
    """Two quick jobs, this one, and more than two workers hold."""
    for number in range(QUICK_ONES + 1):
        site.push(*(("ok",) if number != 2 else (mode,)), tag=str(number), **(options if number == 2 else {}))


QUICK_ONES = 60
ALL_TAGS = [str(number) for number in range(QUICK_ONES + 1)]


@contextmanager
def with_whole_hands(site, workers: int) -> Iterator[int]:
    """A pool that begins the quick ones around one that waits for ``gate``; yields its steward's pid.

    The steward is halted: it would take back what waits behind any job that a busy machine holds up, and the slow one
    would be another one of its hand.
    """
    with site.pool("--workers", str(workers), "--reserve-ahead", "4") as pool:
        pool.signal(signal.SIGUSR2)
        eventually(lambda: workers == len(pool.pids(r"^queuepool: worker \d \[default\] paused")))
        push_quick_ones_around(site, "until", gate=str(site.path / "gate"))
        halt(steward := pool.steward())
        pool.signal(signal.SIGCONT)
        yield steward


@pytest.mark.thorough("stores/contract/test_prefetch.py has what was asked for; tests above put back what was reserved")
def test_what_was_asked_for_goes_back_with_what_waits_behind_a_slow_job(site):
    with with_whole_hands(site, 2) as steward:
        eventually(lambda: site.trail(event="start", mode="until"))
        eventually(lambda: [True] == have_asked(site))
        go_on(steward)
        eventually(lambda: QUICK_ONES == len(site.trail(event="end")))
        eventually(lambda: 1 == site.queue.size())
        (site.path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())

    assert QUICK_ONES + 1 == len(site.trail(event="start"))
    assert {1} == {line["attempt"] for line in site.trail(event="start")}


@pytest.mark.thorough("stores/contract/test_prefetch.py has what was asked for; tests above put back what was reserved")
def test_what_was_asked_for_behind_a_job_that_is_stuck_in_c_is_done_by_another_worker(site):
    push_quick_ones_around(site, "hang_in_c")
    with site.pool("--workers", "2", "--reserve-ahead", "4") as pool:
        eventually(lambda: QUICK_ONES == len(site.trail(event="end")))
        pool.signal(signal.SIGQUIT)
        pool.wait()

    assert {1} == {line["attempt"] for line in site.trail(event="start")}


@pytest.mark.thorough("stores/contract/test_prefetch.py has what was asked for; tests above put back what was reserved")
def test_a_killed_worker_leaves_what_it_had_asked_for_as_it_was(site):
    push_quick_ones_around(site, "kill", maxTries=1)
    with site.pool("--workers", "2", "--reserve-ahead", "4"):
        eventually(lambda: 0 == site.queue.size())

    assert (QUICK_ONES + 1, QUICK_ONES) == (len(site.trail(event="start")), len(site.trail(event="end")))
    assert {1} == {line["attempt"] for line in site.trail(event="start")}


@pytest.mark.thorough("stores/contract/test_prefetch.py has what was asked for; tests above put back what was reserved")
def test_a_stop_puts_back_what_was_asked_for(site):
    for number in range(30):
        site.push(
            "until" if number % 4 == 2 else "ok", **({"gate": str(site.path / "gate")} if number % 4 == 2 else {})
        )
    with site.pool("--workers", "2", "--reserve-ahead", "4") as pool:
        eventually(lambda: 2 == len(site.trail(event="start", mode="until")))
        pool.signal(signal.SIGTERM)
        eventually(lambda: pool.pids("^queuepool: master .* draining"))
        (site.path / "gate").touch()
        assert 0 == pool.wait()

    assert (30 - len(site.trail(event="end")), 0) == (site.queue.sizes().ready, site.queue.sizes().reserved)
    assert {1} == {line["attempt"] for line in site.trail(event="start")}


@pytest.mark.thorough("stores/contract/test_prefetch.py has what was asked for; tests above put back what was reserved")
def test_a_job_that_fails_while_the_next_hand_is_on_its_way_is_settled_first(site):
    push_quick_ones_around(site, "raise", maxTries=1)
    with site.pool("--workers", "2", "--reserve-ahead", "4"):
        eventually(lambda: 0 == site.queue.size())

    assert (QUICK_ONES, 1) == (len(site.trail(event="end")), len(site.trail(event="after_failed")))


@pytest.mark.thorough("the contract of prefetched jobs has their order")
def test_one_worker_keeps_their_order_behind_a_slow_job(site):
    with with_whole_hands(site, 1) as steward:
        eventually(lambda: 3 == len(site.trail(event="start")))
        eventually(lambda: [True] == have_asked(site))
        go_on(steward)
        eventually(lambda: 1 == site.queue.sizes().reserved)
        (site.path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())

    assert ALL_TAGS == [line["tag"] for line in site.trail(event="start")]


#: jobs of a worker whose successor is not at work before the gate is there
LATE = """
import os
from pathlib import Path
from tests.support.poolapp import until_told
trail = Path(os.environ["TRAIL"])
if trail.exists() and '"kill"' in trail.read_text():
    until_told({gate!r})
"""


@pytest.mark.thorough("the contract of prefetched jobs has their order")
def test_what_a_killed_worker_held_is_back_in_its_order(site):
    """One successor that is at work earlier takes what is back by then: its first jobs may be later ones."""
    (site.path / "late.py").write_text(LATE.format(gate=str(site.path / "gate")))
    push_quick_ones_around(site, "kill", maxTries=1)
    modules = ("--modules", "tests.support.poolapp,late")
    with site.pool("--workers", "1", "--reserve-ahead", "4", *modules, wait=False):
        eventually(lambda: (QUICK_ONES - 2, 0) == (site.queue.sizes().ready, site.queue.sizes().reserved))
        (site.path / "gate").touch()
        eventually(lambda: 0 == site.queue.size())

    assert ALL_TAGS == [line["tag"] for line in site.trail(event="start")]


@pytest.mark.thorough("faults/test_redis_faults.py kills a server under load")
def test_a_server_that_is_killed_meanwhile_costs_no_attempt_and_nothing_is_done_twice(away, own_server):
    push_quick_ones_around(away, "until", gate=str(away.path / "gate"))
    with away.pool("--workers", "2", "--reserve-ahead", "4"):
        eventually(lambda: away.trail(event="start", mode="until"))
        own_server.kill()
        (away.path / "gate").touch()
        own_server.start()
        eventually(lambda: 0 == away.queue.size())

    assert QUICK_ONES + 1 == len(away.trail(event="start"))
    assert {1} == {line["attempt"] for line in away.trail(event="start")}


def test_it_begins_with_one_job_however_long_the_store_takes():
    prefetch_size = crowded()
    prefetch_size.start_over()  # what had been taken together did not fit on the board

    assert 1 == prefetch_size.ahead()
