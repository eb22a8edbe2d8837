"""A lock that its owner takes again lasts as long as it asks for now, in every store."""

from __future__ import annotations

import pytest

from queuepool.payload.lease import Lock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.factory import Stores

NAME = f"{PREFIX}app.kept"


def seconds_left(built: Stores) -> float:
    [held] = [one for one in built.laravel_cache.locks.held() if one.name == NAME]
    return held.seconds


@pytest.mark.parametrize(("before", "after"), [(1.0, 60.0), (60.0, 30.0), (60.0, 60.0)])
def test_a_lock_that_is_taken_again_lasts_from_then_on(built, before, after):
    locks = built.laravel_cache.locks
    assert locks.take(Lock(NAME, "me", before))
    assert locks.take(Lock(NAME, "me", after))

    assert after - 15 < seconds_left(built) <= after + 1
    assert not locks.take(Lock(NAME, "another", 600.0))
    assert after - 15 < seconds_left(built) <= after + 1
