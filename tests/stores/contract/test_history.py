"""The history in every store: texts in buckets, which expire, and what is too large is not read."""

from __future__ import annotations

import pytest

from queuepool.stores.factory import is_redis
from queuepool.stores.values import MAX_KEPT, Kept
from tests.support.eventually import eventually

BUCKETS = range(1_790_000_000, 1_790_000_000 + 60 * 60, 60)
FIRST = BUCKETS[0]


@pytest.fixture
def values(built):
    return built.values


def test_texts_come_back_with_their_bucket_and_their_writer(values):
    values.keep_history("1m", FIRST, "a.example:p:1", "one", 3600.0)
    values.keep_history("1m", FIRST, "b:p:1", "two", 3600.0)
    values.keep_history("1m", FIRST + 60, "b:p:1", "three", 3600.0)
    values.keep_history("1m", FIRST - 60, "b:p:1", "before", 3600.0)
    values.keep_history("10m", FIRST, "b:p:1", "coarser", 3600.0)

    assert [
        Kept(FIRST, "a.example:p:1", b"one"),
        Kept(FIRST, "b:p:1", b"two"),
        Kept(FIRST + 60, "b:p:1", b"three"),
    ] == sorted(values.history("1m", BUCKETS).texts)


def test_a_repeated_write_is_the_same_write(values):
    for text in ("one", "two", "two"):
        values.keep_history("1m", FIRST, "a:p:1", text, 3600.0)

    assert ([Kept(FIRST, "a:p:1", b"two")], 0) == values.history("1m", BUCKETS)


def test_where_nothing_was_kept_there_is_nothing(values):
    assert ([], 0) == values.history("1h", BUCKETS)


@pytest.mark.bad_input("B148")
def test_what_is_too_large_is_counted_and_not_read(values):
    values.keep_history("1m", FIRST, "a:p:1", "x" * (MAX_KEPT + 1), 3600.0)
    values.keep_history("1m", FIRST, "b:p:1", "x" * MAX_KEPT, 3600.0)
    texts, ignored = values.history("1m", BUCKETS)

    assert (["b:p:1"], 1) == ([one.writer for one in texts], ignored)


def test_what_has_expired_is_gone_and_swept(built, values):
    values.keep_history("1m", FIRST, "old:p:1", "one", 0.0 if not is_redis(built.settings.url) else 1.0)
    values.keep_history("1m", FIRST + 60, "new:p:1", "two", 3600.0)

    eventually(lambda: ["new:p:1"] == [one.writer for one in values.history("1m", BUCKETS).texts])
    values.sweep_history()

    assert ["new:p:1"] == [one.writer for one in values.history("1m", BUCKETS).texts]


def test_many_buckets_of_several_pools_are_read_at_once(values):
    for bucket in range(FIRST, FIRST + 600 * 30, 600):
        for pool in range(4):
            values.keep_history("10m", bucket, f"h:p{pool}:1", "text", 3600.0)

    assert 120 == len(values.history("10m", range(FIRST, FIRST + 600 * 144, 600)).texts)
