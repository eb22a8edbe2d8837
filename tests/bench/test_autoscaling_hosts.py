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
TWO_OR_THREE = pytest.mark.parametrize("hosts", [2, pytest.param(3, marks=pytest.mark.thorough("more of the same"))])
#: what waits when the hosts begin
BACKLOG = [Arrival(0.0, 1.0)] * 400


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


def most_together(hosts: int) -> int:
    """Of the hosts that begin with the backlog: hardly more than of one, but each rounds up."""
    alone = World(BACKLOG, Ours(FEWEST, MOST), begins_with=FEWEST, boot=3.0).run(MINUTE)
    return int(1.3 * max(alone.sizes)) + hosts


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


@pytest.mark.thorough("of one host, test_autoscaling")
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


@pytest.mark.parametrize("hosts", [2, 3])
def test_hosts_that_begin_together_with_much_to_do_share_it(hosts):
    """As after an outage: what waits has gathered before any of them knows of another."""
    world = on_hosts(BACKLOG, hosts, AIMS, until=MINUTE, boot=3.0)

    assert peaks(world) <= most_together(hosts)


def test_hosts_that_know_nothing_of_each_other_grow_for_all_of_it():
    """Without this, the test above would show nothing."""
    strangers = World(BACKLOG, *(Ours(FEWEST, MOST) for _ in range(2)), begins_with=FEWEST, boot=3.0)
    strangers.run(MINUTE)

    assert peaks(strangers) > most_together(2)


@pytest.mark.parametrize("hosts", [2, 3])
def test_a_long_job_is_one_hosts(hosts):
    """Each host has one worker, so one job is too many for all of them."""
    jobs = [Arrival(10.0, 60.0)] * (hosts + 1)
    strangers = World(jobs, *(Ours(FEWEST, MOST) for _ in range(hosts)), begins_with=FEWEST, boot=0.5)
    strangers.run(MINUTE)

    assert len(jobs) == peaks(on_hosts(jobs, hosts, AIMS, until=MINUTE)) < peaks(strangers)


@pytest.mark.thorough("a quarter of a minute for what the simulations above show in part")
@pytest.mark.parametrize("hosts", [2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_is_met_by_all_hosts_together(seed, hosts):
    until = STEP + 5 * MINUTE
    alone = World(jobs_of(STEEP, seed), Ours(FEWEST, MOST), begins_with=FEWEST, boot=0.5).run(until)
    world = on_hosts(jobs_of(STEEP, seed), hosts, AIMS, until=until)

    assert peaks(world) <= 1.3 * max(alone.sizes) + hosts
    assert world.outcomes[0].wait(0.95, STEP, STEP + MINUTE) <= 5.0


@pytest.mark.thorough("a quarter of a minute for what the simulations above show in part")
@pytest.mark.parametrize("hosts", [2, 3])
def test_long_jobs_that_come_all_the_time_take_hardly_more_workers_of_several_hosts(hosts):
    alone = World(jobs_of(LONG, 1), Ours(FEWEST, MOST), begins_with=FEWEST, boot=0.5).run(WHOLE)
    world = on_hosts(jobs_of(LONG, 1), hosts, AIMS, until=WHOLE)

    assert sum(outcome.worker_seconds for outcome in world.outcomes) <= 1.2 * alone.worker_seconds
    assert world.outcomes[0].wait(0.95) <= AIMS.target_wait


@TWO_OR_THREE
def test_a_host_that_dies_is_made_up_for_within_the_life_of_its_notice_and_five_seconds(hosts):
    dies_at, made_up = 10 * MINUTE, 35.0
    jobs = coming(lambda _: 16.0, 16.0, 0.5)(random.Random(1))
    world = on_hosts(jobs, hosts, AIMS, until=20 * MINUTE, dies_at=dies_at)
    left = world.outcomes[:-1]

    assert 9 <= sum(at(outcome, dies_at + made_up + 1.0) for outcome in left)  # eight are always busy
    assert left[0].wait(0.95, since=dies_at + made_up) <= 5.0


@pytest.mark.thorough("two seconds; what a host decides by its memory is in unit tests")
def test_what_a_host_has_no_memory_for_is_done_by_the_others_and_does_not_come_and_go():
    jobs = coming(lambda _: 16.0, 16.0, 0.5)(random.Random(1))
    world = on_hosts(jobs, 2, AIMS, until=WHOLE, rooms=[2.0])
    small, large = world.outcomes

    assert 2 == max(small.sizes)
    assert large.wait(0.95, since=SETTLED) <= 1.0
    assert max(settled_turns(small), settled_turns(large)) <= 2
