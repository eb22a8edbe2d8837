"""Weighted queues: each gets exactly its share of a worker's jobs, and none starves."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuepool.config.pool_queues import queue_words, served_queues
from queuepool.payload.lease import Lease
from queuepool.worker.turns import Turns

NAMES, WEIGHTS = ("high", "default", "low"), (6, 3, 1)


def turns(weights: tuple[int, ...] = WEIGHTS) -> Turns:
    return Turns(NAMES[: len(weights)], weights, lambda: 0.0)


def reserved(turns: Turns, waiting: Mapping[str, int], batch: int = 1, names: tuple[str, ...] = NAMES) -> list[str]:
    """The queues of one reserve's jobs, as a store answers that has so many waiting in each."""
    there = [queue for queue in turns.order(names) for _ in range(waiting[queue])][:batch]
    turns.took([Lease(queue, b"", 1) for queue in there])
    return there


def shares(turns: Turns, waiting: Mapping[str, int], jobs: int, batch: int = 1) -> Counter[str]:
    found: list[str] = []
    while len(found) < jobs:
        found += reserved(turns, waiting, batch)
    return Counter(found)


FULL = dict.fromkeys(NAMES, 100)


def test_ten_jobs_are_six_of_high_three_of_default_and_one_of_low():
    assert Counter(high=6, default=3, low=1) == shares(turns(), FULL, 10)


@pytest.mark.by_turns("batch")
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_the_shares_are_those_of_the_weights_however_many_jobs_a_reserve_brings(batch):
    found = shares(turns(), FULL, 100_000, batch)

    assert [pytest.approx(0.1 * weight * found.total(), abs=batch) for weight in WEIGHTS] == [*map(found.get, NAMES)]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=3), st.integers(1, 64))
def test_no_queue_waits_longer_than_a_round_of_the_weights(weights, batch):
    ours, waited = turns(tuple(weights)), dict.fromkeys(NAMES[: len(weights)], 0)
    for _ in range(300):
        first = reserved(ours, FULL, batch, tuple(waited))[0]
        waited = {queue: 0 if queue == first else waited[queue] + 1 for queue in waited}
        assert all(waited[queue] <= sum(weights) + len(weights) for queue in waited)


def test_what_a_queue_without_jobs_leaves_is_shared_by_the_others():
    found = shares(turns(), FULL | {"high": 0}, 10_000)

    assert (7500, 2500) == (pytest.approx(found["default"], abs=2), pytest.approx(found["low"], abs=2))


@pytest.mark.parametrize("names", [NAMES, ("high", "default")], ids=["empty", "paused"])
def test_a_queue_that_had_nothing_or_was_paused_shuts_out_nobody_afterwards(names):
    ours = turns()
    for _ in range(1000):
        reserved(ours, FULL | {"low": 0}, names=names)

    found = shares(ours, FULL, 100)
    assert 10 == pytest.approx(found["low"], abs=1)


def test_workers_that_live_for_one_job_begin_with_each_queue_by_its_weight():
    draw = random.Random(37)
    starts = Counter(Turns(NAMES, WEIGHTS, draw.random).order(NAMES)[0] for _ in range(10_000))

    assert [pytest.approx(1000 * weight, abs=150) for weight in WEIGHTS] == [*map(starts.get, NAMES)]


def test_wherever_a_worker_begins_its_first_ten_jobs_are_by_the_weights():
    draw = random.Random(42)

    for _ in range(1000):
        assert Counter(high=6, default=3, low=1) == shares(Turns(NAMES, WEIGHTS, draw.random), FULL, 10)


def test_queues_are_written_with_their_weights_or_without_any():
    assert ("high*6", "{a:b}*1") == served_queues("high * 6,{a:b}*01")
    assert ("high", "low") == served_queues("high, low")
    assert "high*6,low*1" == queue_words(("high", "low"), (6, 1))
    assert "high,low" == queue_words(("high", "low"), ())
