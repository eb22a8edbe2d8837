"""The counters of Laravel's rate limiters: what one more use is, and when a window begins anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuepool.stores.factory import Stores
from tests.support.asked_again import asked_again
from tests.support.drivers import PATIENCE
from tests.support.eventually import eventually
from tests.support.redis_cluster import TAGGED

NAME = f"{TAGGED}laravel_cache:0123456789abcdef"


@pytest.fixture
def counters(built):
    return built.values


def test_as_many_uses_are_counted_as_fit_into_a_window(counters):
    taken = [counters.count_use(NAME, 3, 60) for _ in range(5)]

    assert [None] * 3 == taken[:3]
    assert all(wait is not None and 50 <= wait <= 60 for wait in taken[3:])


def test_each_counter_has_a_window_of_its_own(counters):
    counters.count_use(NAME, 1, 60)

    assert None is counters.count_use(f"{NAME}2", 1, 60)


def test_a_look_counts_nothing(counters):
    looks = [counters.count_use(NAME, 1, 0) for _ in range(3)]
    counters.count_use(NAME, 1, 60)

    assert [None] * 3 == looks
    assert counters.count_use(NAME, 1, 0) is not None


def test_a_window_begins_anew_at_its_end(counters):
    assert None is counters.count_use(NAME, 1, 1)
    eventually(lambda: counters.count_use(NAME, 1, 0) is None)

    assert None is counters.count_use(NAME, 1, 60)
    assert counters.count_use(NAME, 1, 60) is not None


def test_a_counter_whose_timer_is_gone_begins_anew(counters):
    for _ in range(2):
        counters.count_use(NAME, 2, 60)
    counters.remove(f"{NAME}:timer")

    assert [None, None] == [counters.count_use(NAME, 2, 60) for _ in range(2)]
    assert counters.count_use(NAME, 2, 60) is not None


def test_of_many_at_once_no_more_are_counted_than_fit(built):
    def use(_: int) -> float | None:
        with closing(Stores(built.settings, reply_timeout=PATIENCE)) as own:
            return asked_again(lambda: own.values.count_use(NAME, 5, 60))

    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(use, range(16)))

    assert 5 == taken.count(None)
