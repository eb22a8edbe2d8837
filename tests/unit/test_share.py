"""How pools share what waits: the parts add up, follow the bounds, and go past those that can do no more."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

from hypothesis import given
from hypothesis import strategies as st

from queuepool.steward.demand import QueueTotals, Scaler
from queuepool.steward.share import Bid, divided, part_of, share_of, turn_at, whole
from queuepool.steward.wish import Aims
from tests.support.each import each
from tests.support.effort import effort, patient

pytestmark = patient
MANY = effort(100)

weights = st.integers(1, 10**6)
amounts = st.floats(0, 1e7)
turns = st.floats(0, 0.999)
bids = st.lists(
    st.builds(Bid, st.uuids().map(str), weights, amounts, amounts, st.booleans()),
    min_size=1,
    max_size=6,
    unique_by=lambda bid: bid.owner,
)
run_times = st.none() | st.floats(0, 1e5)


def bid(owner: str, weight: int, busy: int = 0, **more: bool) -> Bid:
    """Of a pool that may run ``weight`` jobs at once, and runs some."""
    return Bid(owner, weight, weight, weight - busy, **more)


def parts(several: list[Bid], jobs: int, run_time: float | None, turn: float = 0.0) -> list[int]:
    """Each pool's own view, where all know the same."""
    return [
        part_of(own, [other for other in several if other is not own], jobs, run_time, 10.0, turn) for own in several
    ]


@MANY
@given(several=bids, jobs=st.integers(0, 10**6), run_time=run_times, turn=turns)
def test_the_parts_of_all_pools_add_up_to_what_waits(several, jobs, run_time, turn):
    found = parts(several, jobs, run_time, turn)

    assert jobs == sum(found)
    assert min(found) >= 0


@MANY
@given(several=bids)
def test_the_shares_of_pools_that_can_grow_add_up_to_what_comes(several):
    growing = [replace(one, grows=True) for one in several]
    shares = [share_of(own, [other for other in growing if other is not own]) for own in growing]

    assert isclose(1.0, sum(shares))


@MANY
@given(several=bids, amount=amounts, most=st.data())
def test_none_has_more_than_it_can_do_while_another_could_do_more(several, amount, most):
    sizes = most.draw(st.lists(amounts, min_size=len(several), max_size=len(several)))
    found = divided(amount, [one.weight for one in several], sizes)
    small = 1e-6 * (1.0 + amount + sum(sizes))

    assert abs(amount - sum(found)) <= small
    if amount <= sum(sizes):
        assert all(part <= size + small for part, size in zip(found, sizes, strict=True))


@each(
    ("several", "jobs", "run_time", "expected"),
    [
        ([bid("a", 50)], 9, 0.5, [9]),
        ([bid("a", 50), bid("b", 50)], 100, 0.5, [50, 50]),
        ([bid("a", 10), bid("b", 30)], 100, 0.5, [25, 75]),
        ([bid("a", 50), bid("b", 50), bid("c", 100)], 100, 0.5, [25, 25, 50]),
        # Two that get no more begin 2 * 10 / 0.5 jobs in time.
        ([bid("a", 50), Bid("b", 50, 2, 0, grows=False)], 200, 0.5, [160, 40]),
        # A worker for each long job: no more than are free.
        ([bid("a", 10, busy=9), bid("b", 10)], 8, 60.0, [1, 7]),
        ([bid("a", 10, busy=10), bid("b", 10, busy=10)], 8, 60.0, [4, 4]),  # too much for both
        ([bid("a", 4), bid("b", 4)], 100, None, [50, 50]),
        ([bid("a", 50), Bid("b", 50, -3, -3)], 10, 0.5, [10, 0]),  # it runs only jobs of another queue
        ([bid("a", 50), bid("b", 50)], 0, 0.5, [0, 0]),
    ],
)
def test_the_parts_in_plain_cases(several, jobs, run_time, expected):
    assert expected == parts(several, jobs, run_time)


def test_a_single_job_is_one_pools_and_each_has_its_turns():
    several = [bid(name, 50) for name in "abcd"]
    owners = [parts(several, 1, 60.0, turn / 20).index(1) for turn in range(20)]

    assert {0: 5, 1: 5, 2: 5, 3: 5} == {owner: owners.count(owner) for owner in owners}


def test_turns_last_two_seconds_and_come_to_all_pools_alike():
    several = [bid(name, weight) for name, weight in (("a", 10), ("b", 10), ("c", 20))]
    owners = [parts(several, 1, 60.0, turn_at(2.0 * number)).index(1) for number in range(200)]

    assert turn_at(100.0) == turn_at(101.9) != turn_at(102.0)
    assert all(abs(expected - owners.count(owner)) <= 3 for owner, expected in enumerate((50, 50, 100)))


@MANY
@given(found=st.lists(st.floats(0, 1e6), min_size=1, max_size=9), turn=turns)
def test_whole_parts_are_beside_the_true_ones(found, turn):
    assert all(abs(one - other) < 1.001 for one, other in zip(found, whole(found, turn), strict=True))


@each(
    ("others", "share"),
    [
        ((), 1.0),
        ((bid("b", 50),), 0.5),
        ((bid("b", 150),), 0.25),
        ((bid("b", 50, grows=False),), 1.0),
        ((bid("b", 50), bid("c", 50, grows=False)), 0.5),
    ],
)
def test_what_nobody_keeps_up_with_is_for_those_that_can_grow(others, share):
    assert share == share_of(bid("a", 50), others)


# What follows for a pool

AIMS = Aims(fewest=1, most=50, target_wait=10.0)
OTHER = bid("b", 50)


def burst(jobs: int, *others: Bid) -> tuple[int, str]:
    """The wish of a pool that has known jobs of half a second, and finds so many at once."""
    scaler = Scaler(60.0, owner="a")
    scaler.look(0.0, {"default": QueueTotals(0, 0, 0, 0.0, 100, 50.0, others=others)}, 20, 0, AIMS)
    found = QueueTotals(jobs, 0, 0, 1.0, 100, 50.0, others=others)
    wish = scaler.look(600.0, {"default": found}, 20, 0, AIMS)
    return wish.workers, wish.why


def test_a_pool_that_is_not_alone_grows_for_its_part():
    assert (26, 40) == (burst(1000, OTHER)[0], burst(1000)[0])  # 500 in ten seconds, and what comes
    assert "500 of 1000 waiting jobs are its part" == burst(1000, OTHER)[1]
    assert "1000 jobs wait" == burst(1000)[1]


def test_what_others_cannot_do_is_added_to_its_part():
    held = Bid("b", 50, 2, 0, grows=False)

    assert 40 == burst(1000, held)[0]


def test_a_job_that_is_late_is_everybodys():
    """The pool whose part it is may be unable to do it, without knowing that."""
    scaler = Scaler(60.0, owner="b")
    late = QueueTotals(1, 0, 1, 11.0, 100, 6000.0, others=(replace(OTHER, owner="a"),))
    wishes = [
        scaler.look(float(now), {"default": late}, 1, 0, AIMS, turn).workers for now, turn in ((0, 0.0), (1, 0.6))
    ]

    assert [2, 2] == wishes  # whoever's turn it is


def test_two_pools_together_see_as_coming_what_comes():
    """Ten a second come, each of the two takes three: both see half of what nobody takes."""
    pools = {name: Scaler(60.0, owner=name) for name in "ab"}
    needs = dict.fromkeys(pools, 0.0)
    for now in range(60):
        for name, scaler in pools.items():
            others = (bid("b" if name == "a" else "a", 50),)
            found = QueueTotals(4 * now, 0, 3, 0.0, 3 * now, 0.003 * now, others=others)
            needs[name] = scaler.look(float(now), {"default": found}, 3, 0, AIMS).need

    # Each keeps up with five a second, of a millisecond each, and works off half of 236 in ten seconds.
    expected = 5 * 0.001 + 118 * 0.001 / 10
    assert all(isclose(expected, need, rel_tol=0.01) for need in needs.values())
