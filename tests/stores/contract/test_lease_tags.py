"""No two living workers share a tag, and nothing is reserved under a retired one."""

from __future__ import annotations

import pytest

from tests.support.samples import payload
from tests.support.store_contract import reserved


def test_workers_that_join_get_tags_of_their_own(store):
    tags = [store.join(queues=["default"]) for _ in range(100)]  # else none is claimed where queues are in slots

    assert 100 == len(set(tags))
    assert 0 < min(tags)


@pytest.mark.every_store("connection")
@pytest.mark.parametrize("verb", ["delete", "give_back", "renew"])
def test_what_somebody_else_reserved_is_not_settled_without_a_tag(store, verb):
    [lease] = reserved(store, payload("a"))

    assert [False] == getattr(store, verb)([lease._replace(tag=0)])
    assert [True] == getattr(store, verb)([lease])
