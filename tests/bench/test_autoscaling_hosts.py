"""Several hosts on one queue share what waits as docs/autoscaling.md says: simulated, by their notices alone."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.bench.autoscale.hosts import on_hosts
from tests.bench.autoscale.loads import LOADS, LONG, MINUTE, STEP, WHOLE, Load, coming
from tests.bench.autoscale.report import AIMS, FEWEST, MOST, SEEDS
from tests.bench.autoscale.supervisors import Ours
from tests.bench.autoscale.world import Arrival, Outcome, Sight, World

STEADY, STEEP, *_ = LOADS
#: until the hosts have begun, know each other, and have given back what they began with too many
SETTLED = 5 * MINUTE
FEW = [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.thorough("more of the same")) for seed in SEEDS[1:])]
TWO_OR_THREE = pytest.mark.parametrize("hosts", [2, 3])


def jobs_of(load: Load, seed: int) -> list[Arrival]:
    return load.made(random.Random(seed))


def at(outcome: Outcome, second: float) -> int:
    """How many workers it had decided on by then: one number a second."""
    return outcome.sizes[int(second)]


def settled_turns(outcome: Outcome) -> int:
    return Outcome(sizes=outcome.sizes[int(SETTLED) :]).turns


def peaks(world: World) -> int:
    """The most workers of each pool, together."""
    return sum(max(outcome.sizes) for outcome in world.outcomes)


def test_the_worker_that_has_waited_longest_has_the_next_job():
    ended = [0, 0]

    @dataclass
    class Still:
        number: int

        def decide(self, sight: Sight) -> int:
            ended[self.number] = sight.ended
            return sight.workers

    jobs = [Arrival(float(number), 0.1) for number in range(1, 9)]
    world = World(jobs, Still(0), Still(1), begins_with=1, boot=0.0)
    world.run(20.0)

    assert [0.0] * 8 == [wait for _, wait in world.outcomes[0].waits]
    assert [4, 4] == ended


@TWO_OR_THREE
@pytest.mark.parametrize("seed", FEW)
def test_a_steady_load_changes_no_hosts_direction_more_than_twice(seed, hosts):
    alone = World(jobs_of(STEADY, seed), Ours(FEWEST, MOST), begins_with=FEWEST, boot=0.5).run(WHOLE)
    world = on_hosts(jobs_of(STEADY, seed), hosts, AIMS, until=WHOLE)

    assert max(map(settled_turns, world.outcomes)) <= 2
    assert world.outcomes[0].wait(0.95, since=SETTLED) <= 1.0
    # Each host rounds up.
    together = sum(outcome.worker_seconds for outcome in world.outcomes)
    assert together <= 1.2 * alone.worker_seconds + (hosts - 1) * WHOLE


@TWO_OR_THREE
@pytest.mark.parametrize("seed", FEW)
def test_no_host_grows_for_the_part_of_another(seed, hosts):
    until = STEP + 5 * MINUTE
    alone = World(jobs_of(STEEP, seed), Ours(FEWEST, MOST), begins_with=FEWEST, boot=0.5).run(until)
    world = on_hosts(jobs_of(STEEP, seed), hosts, AIMS, until=until)

    assert peaks(world) <= 1.3 * max(alone.sizes) + hosts
    assert world.outcomes[0].wait(0.95, STEP, STEP + MINUTE) <= 5.0


@TWO_OR_THREE
def test_hosts_that_begin_together_with_much_to_do_share_it(hosts):
    """As after an outage: what waits has gathered before any of them knows of another."""
    jobs = [Arrival(0.0, 1.0)] * 400
    until = MINUTE
    alone = World(jobs, Ours(FEWEST, MOST), begins_with=FEWEST, boot=3.0).run(until)
    world = on_hosts(jobs, hosts, AIMS, until=until, boot=3.0)

    assert peaks(world) <= 1.3 * max(alone.sizes) + hosts


@TWO_OR_THREE
def test_a_long_job_is_one_hosts(hosts):
    jobs = jobs_of(LONG, 1)
    alone = World(jobs, Ours(FEWEST, MOST), begins_with=FEWEST, boot=0.5).run(WHOLE)
    world = on_hosts(jobs, hosts, AIMS, until=WHOLE)

    assert sum(outcome.worker_seconds for outcome in world.outcomes) <= 1.2 * alone.worker_seconds + hosts * WHOLE
    assert world.outcomes[0].wait(0.95) <= AIMS.target_wait


def test_hosts_that_know_nothing_of_each_other_grow_for_all_of_it():
    """Without this, the test above would show nothing."""
    jobs = jobs_of(STEEP, 1)
    strangers = World(jobs, *(Ours(FEWEST, MOST) for _ in range(2)), begins_with=FEWEST, boot=0.5)
    strangers.run(STEP + MINUTE)

    assert peaks(strangers) > 1.2 * peaks(on_hosts(jobs, 2, AIMS, until=STEP + MINUTE))


@TWO_OR_THREE
def test_a_host_that_dies_is_made_up_for_within_the_life_of_its_notice_and_five_seconds(hosts):
    dies_at, made_up = 10 * MINUTE, 35.0
    jobs = coming(lambda _: 16.0, 16.0, 0.5)(random.Random(1))
    world = on_hosts(jobs, hosts, AIMS, until=20 * MINUTE, dies_at=dies_at)
    left = world.outcomes[:-1]

    assert 9 <= sum(at(outcome, dies_at + made_up + 1.0) for outcome in left)  # eight are always busy
    assert left[0].wait(0.95, since=dies_at + made_up) <= 5.0


def test_what_a_host_has_no_memory_for_is_done_by_the_others_and_does_not_come_and_go():
    jobs = coming(lambda _: 16.0, 16.0, 0.5)(random.Random(1))
    world = on_hosts(jobs, 2, AIMS, until=WHOLE, rooms=[2.0])
    small, large = world.outcomes

    assert 2 == max(small.sizes)
    assert large.wait(0.95, since=SETTLED) <= 1.0
    assert max(settled_turns(small), settled_turns(large)) <= 2
