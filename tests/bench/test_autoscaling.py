"""The simulated pool is one, and the aims of docs/autoscaling.md are met on it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.bench.autoscale.loads import LOADS, Load
from tests.bench.autoscale.report import FEWEST, HOSTS, MARKER, MOST, SEEDS, figures
from tests.bench.autoscale.supervisors import Horizon, Ours
from tests.bench.autoscale.world import Arrival, Outcome, Sight, World
from tests.bench.rig import ROOT

STEADY, STEP, _, SLOW_BOOT, BURST, *_ = LOADS
#: the seeds of a run; all of them take a quarter of a minute
FEW = [pytest.param(SEEDS[:1], id="one"), pytest.param(SEEDS, id="all", marks=pytest.mark.thorough("more of the same"))]


@dataclass
class Fixed:
    """Always so many."""

    workers: int

    def decide(self, sight: Sight) -> int:
        return self.workers


def test_a_worker_takes_one_job_after_the_other_once_it_has_booted():
    load = [Arrival(0.0, 2.0), Arrival(0.0, 2.0), Arrival(10.0, 1.0)]
    outcome = World(load, Fixed(1), begins_with=1, boot=1.0).run(20.0)

    assert [(0.0, 1.0), (0.0, 3.0), (10.0, 0.0)] == outcome.waits
    assert (3.0, 0.0, 0) == (outcome.wait(0.95), outcome.wait(0.95, since=5.0), outcome.turns)


def test_workers_that_boot_at_one_moment_have_one_job_each():
    outcome = World([Arrival(0.0, 2.0)] * 4, Fixed(2), begins_with=2, boot=1.0).run(20.0)

    assert [(0.0, 1.0), (0.0, 1.0), (0.0, 3.0), (0.0, 3.0)] == outcome.waits


def test_one_that_is_told_to_leave_ends_its_job_first():
    outcome = World([Arrival(0.0, 8.0)], Fixed(0), begins_with=2, boot=0.0).run(100.0)

    assert [(0.0, 0.0)] == outcome.waits
    assert 8.0 + 1.25 == outcome.worker_seconds  # of the other from the start until the first decision is carried out


def test_turns_are_changes_of_direction_alone():
    assert [0, 0, 1, 3] == [
        Outcome(sizes=sizes).turns for sizes in ([1, 1], [1, 2, 2, 5], [1, 3, 3, 2, 2, 1], [1, 2, 1, 2, 1])
    ]


def test_horizon_goes_up_by_one_in_three_seconds_while_a_job_waits_and_down_while_none_does():
    horizon = Horizon(1, 10)
    waits = [Sight(float(now), 5, 1, 1.0, 10, 5.0, 3, 0, 0) for now in range(3)]

    assert [4, 3, 3] == [horizon.decide(sight) for sight in waits]
    assert 2 == horizon.decide(Sight(3.0, 0, 0, 0.0, 10, 5.0, 3, 0, 0))


@pytest.mark.parametrize("seeds", FEW)
def test_a_steady_load_changes_direction_twice_at_most_in_half_an_hour(seeds):
    ours = figures(STEADY, Ours, seeds)

    assert ours.turns <= 2
    assert ours.late <= 1.0


@pytest.mark.thorough("a burst, below, asks for more at once")
@pytest.mark.parametrize("seeds", FEW)
def test_of_a_step_from_2_to_40_a_second_nineteen_in_twenty_wait_five_seconds_at_most(seeds):
    assert figures(STEP, Ours, seeds).late <= 5.0


@pytest.mark.parametrize("seeds", FEW)
def test_a_burst_waits_a_third_as_long_as_with_horizon(seeds):
    assert 3 * figures(BURST, Ours, seeds).late <= figures(BURST, Horizon, seeds).late


@pytest.mark.thorough("it takes half a minute")
@pytest.mark.parametrize("load", LOADS, ids=[load.words for load in LOADS])
def test_no_load_leads_beyond_the_bounds(load: Load):
    outcome = World(load.made(random.Random(7)), Ours(FEWEST, MOST), begins_with=FEWEST, boot=load.boot).run(1800.0)

    assert FEWEST <= min(outcome.sizes) <= max(outcome.sizes) <= MOST


def test_the_page_has_a_row_for_each_load():
    written = (ROOT / "docs/autoscaling.md").read_text().partition(MARKER)[2].partition(HOSTS)[0]

    rows = [line.split("|")[1].strip() for line in written.split("\n") if "|" in line]
    assert [load.words for load in LOADS] == rows[2:]
