"""The windows of Laravel's duration limiters in Redis: the fields are those that PHP reads and writes."""

from __future__ import annotations

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreError
from queuepool.stores.factory import Stores
from tests.support.drivers import connection_of, opened
from tests.support.eventually import eventually
from tests.support.redis_server import PREFIX

NAME = "0123456789abcdef"


@pytest.fixture
def stores(request: pytest.FixtureRequest):
    with opened(connection_of("redis", request)) as found:
        yield found


def uses(stores: Stores, most: int, seconds: int, count: int = 1) -> list[float | None]:
    assert stores.laravel_cache.durations
    return [stores.laravel_cache.durations.count_use(NAME, most, seconds) for _ in range(count)]


def test_as_many_uses_are_counted_as_fit_into_a_window(stores):
    taken = uses(stores, 3, 60, 5)

    assert [None] * 3 == taken[:3]
    assert all(wait is not None and 20 <= wait <= 61 for wait in taken[3:])


def test_the_fields_are_whole_numbers_as_php_compares_texts(stores):
    uses(stores, 3, 60, 4)
    start, end, count = stores.client.command("HMGET", f"{PREFIX}{NAME}", "start", "end", "count")

    assert int(start) + 60 == int(end)
    assert b"3" == count
    assert 100 <= stores.client.command("TTL", f"{PREFIX}{NAME}") <= 120


def test_a_window_begins_anew_at_its_end(stores):
    assert [None] == uses(stores, 1, 1)
    eventually(lambda: uses(stores, 1, 1) == [None])


def test_a_window_that_php_has_begun_is_counted_in(stores):
    now = int(stores.queue.now())
    stores.client.command("HMSET", f"{PREFIX}{NAME}", "start", now - 5, "end", now + 55, "count", 1)

    assert [None] == uses(stores, 2, 60)
    [wait] = uses(stores, 2, 60)
    assert wait is not None
    assert 20 <= wait <= 55


def test_a_look_counts_nothing_and_begins_no_window(stores):
    assert [None] == uses(stores, 1, 0)
    assert not stores.client.command("EXISTS", f"{PREFIX}{NAME}")
    uses(stores, 2, 60)
    assert [None] * 2 == uses(stores, 2, 0, 2)
    assert [None] != uses(stores, 1, 0)
    stores.laravel_cache.durations.forget_uses(NAME)
    assert [None] == uses(stores, 1, 0)


def test_a_window_with_damaged_fields_begins_anew(stores):
    stores.client.command("HMSET", f"{PREFIX}{NAME}", "start", "soon", "count", "many")

    assert [None] == uses(stores, 1, 60)
    assert [None] != uses(stores, 1, 60)


def test_a_key_of_another_kind_is_an_error(stores):
    stores.client.command("SET", f"{PREFIX}{NAME}", "text")

    with pytest.raises(StoreError, match="WRONGTYPE"):
        uses(stores, 1, 60)


def test_jobs_in_a_database_have_none(sqlite_url):
    with opened(ConnectionSettings(url=sqlite_url, embedded=True)) as stores:
        assert stores.laravel_cache.durations is None
