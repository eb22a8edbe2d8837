"""The pace of a pool: the newest reading beside earlier ones."""

from __future__ import annotations

import pytest

from queuepool.board.counts import JobCounts, PoolCounts, QueueFacts
from queuepool.board.fields import Totals
from queuepool.board.meters import RUN_BOUNDS
from queuepool.top.reading import PaceMeter, Window
from tests.support.boards import times


def counts(ready: int = 0, measured_at: float = 0.0, done: int = 0, each: float = 1.0) -> PoolCounts:
    queues = {"high": QueueFacts(ready, measured_at=measured_at)}
    return PoolCounts({("high", "mail"): JobCounts(done, run=times(RUN_BOUNDS, each=each, number=done))}, queues=queues)


def test_nothing_is_known_of_the_pace_at_the_first_reading():
    pace = PaceMeter().pace(0.0, Totals(5), counts(3, 1.0, 5))

    assert (None, {}, None) == (pace.rates, pace.growth, pace.recent)


def test_rates_are_those_of_the_last_ten_seconds():
    meter = PaceMeter()
    for second in range(100):
        pace = meter.pace(float(second), Totals(done=second * 3, failed=max(second - 90, 0)), PoolCounts())

    assert pace.rates == pytest.approx((3.0, 0.9, 0.0), rel=0.11)


def test_a_window_keeps_few_readings_however_often_it_is_asked():
    window = Window[int](10.0)
    for tick in range(100_000):
        window.add(tick / 1000, tick)

    assert len(window._kept) <= 12
    assert 9.0 <= window.earliest(99.999)[0] <= 11.1


def test_the_growth_of_a_queue_is_that_between_two_measurements():
    meter = PaceMeter()
    meter.pace(0.0, Totals(), counts(100, 50.0))
    same = meter.pace(1.0, Totals(), counts(100, 50.0))
    later = meter.pace(6.0, Totals(), counts(60, 55.0))

    assert ({}, {"high": -8.0}) == (same.growth, later.growth)


def test_sizes_of_which_only_a_lower_bound_is_known_have_no_growth():
    """A database counts no further than ten thousand: "0/s" there would say that it does not become more."""
    capped = QueueFacts(10_000, measured_at=50.0, is_at_least=True)
    for earlier, later in ((capped, capped), (capped, QueueFacts(9000)), (QueueFacts(9000, measured_at=50.0), capped)):
        meter = PaceMeter()
        meter.pace(0.0, Totals(), PoolCounts(queues={"high": earlier}))
        pace = meter.pace(6.0, Totals(), PoolCounts(queues={"high": later._replace(measured_at=55.0)}))
        assert {} == pace.growth


def test_what_has_ended_of_late_is_the_difference_to_a_minute_ago():
    meter = PaceMeter()
    meter.pace(0.0, Totals(), counts(done=1000, each=0.004))
    pace = meter.pace(30.0, Totals(), counts(done=1000, each=0.004))
    assert 0 == pace.recent["high", "mail"].run.observations

    grown = counts(done=1000, each=0.004).jobs["high", "mail"]
    grown = grown._replace(done=1010, run=grown.run.plus(times(RUN_BOUNDS, each=40.0, number=10)))
    pace = meter.pace(40.0, Totals(), PoolCounts({("high", "mail"): grown}))
    assert 10 == pace.recent["high", "mail"].done
    assert 30.0 < pace.recent["high", "mail"].run.quantile(0.5, RUN_BOUNDS) <= 60.0
    assert 10 == pace.recent["high", "mail"].done


@pytest.mark.bad_input("B138")
def test_numbers_that_go_backwards_count_as_nothing():
    meter = PaceMeter()
    meter.pace(0.0, Totals(100, 5, 1), counts(done=50))
    pace = meter.pace(5.0, Totals(0, 0, 0), counts(done=7))

    assert (0.0, 0.0, 0.0) == pace.rates
    lower = pace.recent["high", "mail"]
    assert (0, 0, 0.0) == (lower.done, lower.run.observations, lower.run.total)


@pytest.mark.thorough("a size; the other tests have the names of a pool")
@pytest.mark.bad_input("B138")
def test_of_ten_thousand_names_few_are_kept():
    many = PoolCounts({("high", f"job{number}"): JobCounts(done=1) for number in range(10_000)})

    meter = PaceMeter()
    meter.pace(0.0, Totals(), many)
    assert 5000 == len(meter.pace(5.0, Totals(), many).recent)
