"""The tags that workers draw: no two living workers have one, and nothing is reserved under one that was given up."""

from __future__ import annotations

import pytest
from samples import payload

from queuepool.build import Stores
from queuepool.stores.redis.queue import TAGS, RedisQueue
from queuepool.stores.sql import marks
from store.contract import reserved


def begin_at(built: Stores, last: int) -> int:
    """As if so many tags had been drawn; gives how many there are."""
    store = built.queue
    if isinstance(store, RedisQueue):
        store.client.command("SET", store.keys.workers, last)
        return TAGS
    store.join()
    store.client.ask(
        lambda c: c.exec_driver_sql(f"UPDATE cache SET value = '{last}' WHERE cache.key LIKE '%%queuepool:workers'")
    )
    return marks.TAGS


def test_workers_that_join_get_tags_of_their_own(store):
    tags = [store.join() for _ in range(100)]

    assert 100 == len(set(tags))


def test_tags_begin_at_one_again_for_zero_is_laravels(built):
    most = begin_at(built, 0)
    begin_at(built, most - 2)

    assert [most - 1, 1, 2] == [built.queue.join() for _ in range(3)]


def test_the_first_tag_of_all_is_not_zero(built):
    begin_at(built, 0)

    assert 1 == built.queue.join()


@pytest.mark.parametrize("verb", ["delete", "give_back", "renew"])
def test_what_somebody_else_reserved_is_not_settled_without_a_tag(store, verb):
    [lease] = reserved(store, payload("a"))

    assert [False] == getattr(store, verb)([lease._replace(tag=0)])
    assert [True] == getattr(store, verb)([lease])
