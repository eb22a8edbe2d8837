"""The laws of the number of workers that a pool wishes for, over any load, and what it is in plain cases."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.steward.demand import QueueTotals, RecentNeeds, Scaler
from queuepool.steward.wish import Aims, PoolLoad, QueueLoad, wish_for
from tests.support.each import each
from tests.support.effort import effort, patient

pytestmark = patient
MANY = effort(300)
AIMS = Aims(fewest=2, most=16, target_wait=10.0)

counts = st.integers(0, 10**6)
seconds = st.floats(0, 1e7)
queues = st.builds(
    QueueLoad,
    waiting=counts,
    running=counts,
    oldest=seconds,
    arrivals=st.floats(0, 1e6),
    run_time=st.none() | seconds,
    elsewhere=counts,
)
loads = st.builds(
    PoolLoad,
    queues=st.lists(queues, max_size=3).map(tuple),
    workers=st.integers(0, 1024),
    starting=st.integers(0, 4),
    lanes=st.sampled_from([1, 10]),
)
aims = st.builds(
    lambda fewest, more, target: Aims(fewest, fewest + more, target),
    st.integers(1, 1024),
    st.integers(0, 1024),
    st.floats(0.1, 1e5),
)
recents = st.just(inf) | st.floats(0, 2000)


@MANY
@given(load=loads, aims=aims, recent=recents)
def test_no_wish_is_beyond_the_bounds(load, aims, recent):
    wish = wish_for(load, aims, recent)

    assert aims.fewest <= wish.workers <= aims.most
    assert 0 < len(wish.why) <= 62  # its room on the board


@MANY
@given(load=loads, aims=aims, recent=recents, more=counts, longer=seconds, which=st.integers(0, 2))
def test_no_wish_is_less_where_more_jobs_wait_or_have_waited_longer(load, aims, recent, more, longer, which):
    worse = [
        replace(queue, waiting=queue.waiting + more, oldest=queue.oldest + longer) if number == which else queue
        for number, queue in enumerate(load.queues)
    ]

    assert wish_for(load, aims, recent).workers <= wish_for(replace(load, queues=tuple(worse)), aims, recent).workers


@pytest.mark.thorough("the test above says so of what waits")
@MANY
@given(load=loads, aims=aims, recent=recents, more=st.floats(0, 2000))
def test_no_wish_is_less_where_more_was_needed_of_late(load, aims, recent, more):
    assert wish_for(load, aims, recent).workers <= wish_for(load, aims, recent + more).workers


@pytest.mark.thorough("test_a_steward_that_begins_takes_no_worker_away")
@MANY
@given(load=loads, aims=aims)
def test_there_are_no_fewer_before_it_is_known_what_was_needed_of_late(load, aims):
    assert wish_for(load, aims, inf).workers >= min(max(load.workers, aims.fewest), aims.most)


@MANY
@given(load=loads, aims=aims, recent=recents)
def test_under_the_same_load_the_number_goes_one_way_and_comes_to_rest(load, aims, recent):
    """A pool grows in steps, and by one at least."""
    sizes = [wish_for(load, aims, recent).workers]
    for _ in range(1024):
        sizes.append(wish_for(replace(load, workers=sizes[-1]), aims, recent).workers)
        if sizes[-1] == sizes[-2]:
            break

    assert sizes in (sorted(sizes), sorted(sizes, reverse=True))
    assert sizes[-1] == sizes[-2]


@each(
    ("queue", "workers", "wished"),
    [
        (QueueLoad(arrivals=8.0, run_time=0.5), 5, 5),  # four are busy all the time: five, a fifth of their time not
        (QueueLoad(waiting=100, arrivals=8.0, run_time=0.5), 2, 6),  # at most four more at once
        (
            QueueLoad(waiting=100, arrivals=8.0, run_time=0.5),
            7,
            9,
        ),  # four keep up, five work off 50 s in 10
        (QueueLoad(waiting=1, run_time=0.01), 2, 2),
        (QueueLoad(waiting=5, running=3, run_time=60.0), 4, 8),  # each needs a worker
        (QueueLoad(waiting=500, running=2), 2, 4),  # of unknown jobs as many as there are workers
        (QueueLoad(waiting=50, running=4, oldest=11.0, run_time=0.001), 8, 10),  # whatever the means say
        (QueueLoad(waiting=1, running=8, oldest=11.0, run_time=0.001), 12, 9),  # no more than there are jobs
        (QueueLoad(), 8, 2),
    ],
)
def test_the_wish_in_plain_cases(queue, workers, wished):
    assert wished == wish_for(PoolLoad((queue,), workers), AIMS, 0.0).workers


def test_a_late_job_calls_for_a_worker_also_where_it_is_another_pools():
    waits = QueueLoad(running=4, oldest=9.0, run_time=60.0, elsewhere=3)

    assert [4, 5] == [
        wish_for(PoolLoad((replace(waits, oldest=oldest),), 4), AIMS, inf).workers for oldest in (9.0, 11.0)
    ]


def test_a_late_job_is_a_need_beyond_the_bound_too():
    late = QueueLoad(waiting=50, oldest=60.0, run_time=0.01)
    found = wish_for(PoolLoad((late,), 8), Aims(1, 8, 10.0), 0.0)

    assert (8, 10) == (found.workers, found.need)


def test_workers_that_boot_are_waited_for_before_a_late_job_calls_for_more():
    late = QueueLoad(waiting=50, oldest=60.0, run_time=0.01)

    assert 8 == wish_for(PoolLoad((late,), 8, starting=1), AIMS, 8.0).workers
    assert 10 == wish_for(PoolLoad((late,), 8), AIMS, 8.0).workers


def test_of_workers_that_run_ten_jobs_at_once_a_tenth_is_needed():
    busy = QueueLoad(waiting=80, running=40, run_time=60.0)

    assert 12 == wish_for(PoolLoad((busy,), 8, lanes=10), AIMS, inf).workers


@each(("need", "workers"), [(4.0, 5), (5.9, 7), (6.5, 8), (7.5, 8)])
def test_there_are_fewer_only_where_clearly_fewer_are_enough(need, workers):
    queue = QueueLoad(arrivals=0.8 * need, run_time=1.0)

    assert workers == wish_for(PoolLoad((queue,), 8), AIMS, need).workers


@each(("need", "workers"), [(18.0, 21), (19.0, 24), (20.0, 24)])
def test_of_many_workers_an_eighth_at_least_goes_at_once(need, workers):
    assert workers == wish_for(PoolLoad((QueueLoad(),), 24), Aims(1, 50, 10.0), need).workers


def test_the_highest_need_of_late_is_forgotten_after_its_time():
    needs = RecentNeeds(10.0)
    assert inf == needs.highest(0.0)
    for now, need in enumerate([3.0, 9.0, 2.0, 4.0, *[1.0] * 12]):
        needs.note(float(now), need)

    assert inf == RecentNeeds(60.0).highest(100.0)
    assert [4.0, 1.0] == [needs.highest(now) for now in (13.0, 14.0)]


def test_what_was_needed_before_a_gap_says_nothing():
    needs = RecentNeeds(5.0)
    for now in range(20):
        needs.note(float(now), 3.0)
    assert 3.0 == needs.highest(19.5)

    assert inf == needs.highest(120.0)
    needs.note(120.0, 1.0)
    assert inf == needs.highest(121.0)


@pytest.fixture
def scaler() -> Scaler:
    return Scaler(scale_down_after=20.0)


def look(scaler: Scaler, now: float, workers: int, **facts: float) -> int:
    known = {"ready": 0, "reserved": 0, "running": 0, "oldest": 0.0, "ended": 0, "run": 0.0, **facts}
    totals = QueueTotals(**known)  # type: ignore[arg-type]
    return scaler.look(now, {"default": totals}, workers, 0, AIMS).workers


def test_a_pool_keeps_up_with_what_comes_though_nothing_waits(scaler):
    size = 4
    for now in range(60):
        size = look(scaler, float(now), size, ended=16 * now, run=8.0 * now)

    assert 10 == size  # sixteen a second of half a second each: eight are busy


def test_a_job_that_waits_too_long_calls_for_more_once_for_each_time_it_is_measured(scaler):
    size, sizes = 4, []
    for now in range(8):
        late = {"ready": 90, "oldest": 60.0, "ended": 1000, "run": 0.001, "measured_at": float(now // 4)}
        size = look(scaler, float(now), size, **late)
        sizes.append(size)

    assert [5, 5, 5, 5, 6, 6, 6, 6] == sizes


def test_workers_that_a_late_job_called_for_stay_for_as_long_as_others(scaler):
    for now in range(30):
        look(scaler, float(now), 4, ended=1000, run=0.001)
    late = look(scaler, 30.0, 4, ready=90, oldest=60.0, ended=1000, run=0.001)
    sizes = [look(scaler, 31.0 + now, late, ended=1000, run=0.001) for now in range(22)]

    assert (5, [5] * 19, 2) == (late, sizes[:19], sizes[-1])


@pytest.mark.parametrize("run", [inf, nan, -inf])
def test_run_times_that_are_no_number_are_ignored(scaler, run):
    totals = [QueueTotals(1, 0, 0, 0.0, 10 * now, run) for now in range(1, 9)]

    for now, found in enumerate(totals):
        assert isfinite(scaler.look(float(now), {"default": found}, 4, 0, AIMS).need)
    sizes = [look(scaler, 9.0 + now, 4, ended=100 + 16 * now, run=8.0 * now) for now in range(60)]
    assert 8 == sizes[-1]  # ten are needed: twice as many at once at most


def test_what_others_take_from_the_queue_is_theirs(scaler):
    """Ten a second come, another host takes six of them."""
    sizes = [look(scaler, float(now), 4, ready=2, ended=4 * now, run=4.0 * now) for now in range(60)]

    assert 5 == sizes[-1]


def test_totals_that_fall_or_a_clock_that_stands_still_do_no_harm(scaler):
    for now, ended in ((0.0, 100), (1.0, 5), (1.0, 7), (1.0, 9), (2.0, 8)):
        assert 4 == look(scaler, now, 4, ended=ended, run=float(ended))


def test_a_steward_that_begins_takes_no_worker_away(scaler):
    sizes = [look(scaler, 100.0 + now, 12, ended=1000, run=500.0) for now in range(22)]

    assert ([12] * 20, 2) == (sizes[:20], sizes[-1])
