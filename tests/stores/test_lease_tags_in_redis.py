"""Redis keeps the tags of living workers and refuses retired ones; reservations without a tag are Laravel's."""

from __future__ import annotations

import pytest

from queuepool.errors import TagRetired
from queuepool.stores.redis.queue import TAGS
from tests.support.samples import payload

NOW = 1_800_000_000.0


@pytest.fixture
def store(stores):
    stores.queue.clock = repr(NOW)
    return stores.queue


def later(store, seconds):
    store.clock = repr(NOW + seconds)


def test_a_tag_that_somebody_has_is_passed_over_when_the_count_comes_round(store, server):
    first, second = store.join(), store.join()
    server.set(store.keys.workers, first - 1)

    assert second % (TAGS - 1) + 1 == store.join()


def test_a_tag_is_free_again_when_its_worker_has_not_been_heard_of_for_long(store, server):
    tag = store.join()
    server.set(store.keys.workers, tag - 1)
    later(store, 90 + 600 + 1)

    assert tag == store.join()


def test_a_worker_that_reserves_keeps_its_tag(store, server):
    tag = store.join()
    later(store, 600)
    store.reserve(["default"], tag, 1)
    server.set(store.keys.workers, tag - 1)
    later(store, 600 + 90 + 300)

    assert tag != store.join()


def test_a_worker_at_a_long_job_keeps_its_tag_with_its_lease(store, server):
    store.push("default", [payload("a")])
    tag = store.join()
    leases = store.reserve(["default"], tag, 1).leases
    for minute in range(1, 30):
        later(store, 60 * minute)
        assert [True] == store.renew(leases)
    server.set(store.keys.workers, tag - 1)

    assert tag != store.join()


def test_nothing_is_reserved_under_a_tag_that_was_given_up(store):
    store.push("default", [payload("a")])
    old = store.join()
    new = store.join(old)

    with pytest.raises(TagRetired):
        store.reserve(["default"], old, 1)
    assert 1 == len(store.reserve(["default"], new, 1).leases)


def test_a_request_that_was_refused_does_not_open_the_door_to_the_next_late_one(store):
    store.push("default", [payload("a")])
    old = store.join()
    store.retire(old)

    for _ in range(2):
        with pytest.raises(TagRetired):
            store.reserve(["default"], old, 1)
    assert 1 == store.sizes("default").ready


def test_a_retired_tag_is_not_given_to_anybody_for_an_hour(store, server):
    old = store.join()
    store.retire(old)
    later(store, 3500)
    server.set(store.keys.workers, old - 1)
    assert old != store.join()

    later(store, 3700)
    server.set(store.keys.workers, old - 1)
    assert old == store.join()


def test_where_every_tag_is_taken_the_one_that_was_used_longest_ago_is_given(store, server):
    pipe = server.pipeline()
    for tag in range(1, TAGS):
        pipe.zadd(store.keys.tags, {tag: NOW + 100 + tag % 77_777})
    pipe.execute()

    assert 77_777 == store.join()


@pytest.mark.fault("F72")
def test_a_reclaim_under_any_tag_leaves_alone_what_laravel_runs(store, server):
    server.zadd(store.keys.reserved("default"), {payload("a", attempts=1): NOW + 90})

    assert not any(store.reclaim(["default"], tag, 600.0, known=()) for tag in (0, 1, TAGS - 1))


def test_tags_begin_at_one_again_for_zero_is_laravels(store, server):
    server.set(store.keys.workers, TAGS - 2)

    assert [TAGS - 1, 1, 2] == [store.join() for _ in range(3)]


def test_the_first_tag_of_all_is_not_zero(store, server):
    server.set(store.keys.workers, 0)

    assert 1 == store.join()
