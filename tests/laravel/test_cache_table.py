"""Laravel's cache table: each side obeys the control keys that the other writes there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from queuepool.config.settings import ConnectionSettings
from queuepool.stores.control import ControlKeys
from queuepool.stores.factory import Stores
from tests.support.eventually import eventually
from tests.support.laravel_peer import Peer
from tests.support.redis_server import PREFIX
from tests.support.shared_tables import REPORT, made

pytestmark = [*made("sqlite-13", "postgres-8", "mariadb-8"), pytest.mark.by_turns("prefix")]
RESTART = "illuminate:queue:restart"
PAUSED = "illuminate:queue:paused:default:high"


@contextmanager
def control_of(connection: ConnectionSettings) -> Iterator[ControlKeys]:
    stores = Stores(connection)
    yield stores.control
    stores.close()


@pytest.fixture(params=["laravel_cache", ""], ids=["prefix", "no prefix"])
def prefix(request):
    return request.param


@pytest.fixture
def control(shared, prefix):
    with control_of(replace(shared.connection, restart_key=prefix + RESTART)) as control:
        yield control


def test_a_restart_of_laravels_is_seen_here(shared, control, prefix):
    before = control.read(["default"]).restart

    written = shared.peer.run("restart", cache_prefix=prefix)

    assert (None, f"i:{written['value']};") == (before, control.read(["default"]).restart)


def test_a_restart_of_ours_is_the_row_that_laravel_would_have_written(shared, control, prefix):
    began = int(time.time())
    theirs = shared.peer.run("restart", cache_prefix=prefix)["value"]
    [before] = shared.rows("cache")

    ours = control.restart()

    [row] = shared.rows("cache")
    assert ours > theirs
    assert {"value": ours} == shared.peer.run("cache-get", RESTART, cache_prefix=prefix)
    assert (before["key"], f"i:{ours};") == (row["key"], row["value"])
    assert 0 <= row["expiration"] - before["expiration"] <= time.time() + 1 - began


def test_a_restart_of_ours_makes_laravels_worker_leave_in_order(shared, control, prefix):
    with shared.peer.staying("work", sleep=0.05, cache_prefix=prefix) as worker:
        shared.queue.push(REPORT, {"id": 7})
        eventually(shared.runs)

        control.restart()

        assert ('{"status":0}\n', 0) == (worker.communicate(timeout=60)[0], worker.returncode)


def test_a_pause_of_laravels_is_obeyed_here_until_it_is_over(shared, control, prefix):
    shared.peer.run("cache-put", PAUSED, "true", cache_prefix=prefix, seconds=60)
    paused = control.read(["high", "low"]).paused
    shared.change("UPDATE cache SET expiration = expiration - 60")

    assert ({"high"}, frozenset()) == (paused, control.read(["high", "low"]).paused)


def test_a_pause_of_all_queues_is_obeyed_here(shared, control, prefix):
    shared.peer.run("cache-put", "illuminate:queues:paused", "true", cache_prefix=prefix)

    assert {"high", "low"} == control.read(["high", "low"]).paused


def test_a_pause_of_ours_is_the_row_that_laravel_would_have_written(shared, control, prefix):
    shared.peer.run("cache-put", PAUSED, "true", cache_prefix=prefix)
    [before] = shared.rows("cache")

    control.pause("high")
    [row] = shared.rows("cache")
    seen = shared.peer.run("cache-get", PAUSED, cache_prefix=prefix)["value"]
    there = control.resume("high")

    assert ((before["key"], before["value"]), True, True) == ((row["key"], row["value"]), seen, there)
    assert {"value": None} == shared.peer.run("cache-get", PAUSED, cache_prefix=prefix)


def test_a_pause_that_says_who_it_was_is_true_to_laravel(shared, control, prefix):
    """It asks whether the value is true. Source: QueueManager.php, isPaused (13.x)."""
    control.pause("high", 1_764_000_000.0, "me@web1")

    assert "queuepool 1764000000 me@web1" == shared.peer.run("cache-get", PAUSED, cache_prefix=prefix)["value"]
    assert {"high": (1_764_000_000.0, "me@web1")} == control.read(["high", "low"]).pauses


# With a null byte it stands in base64 on PostgreSQL.
@pytest.mark.by_turns("value")
@pytest.mark.parametrize("value", ['{"except": [], "retry": 60}', '"a\\u0000b"'])
def test_a_maintenance_of_laravels_is_obeyed_here(shared, control, prefix, value):
    before = control.read([]).down

    shared.peer.run("cache-put", "illuminate:foundation:down", value, cache_prefix=prefix)

    assert (False, True) == (before, control.read([]).down)


def test_what_laravel_says_under_another_prefix_is_not_for_us(shared, control):
    shared.peer.run("restart", cache_prefix="theirs_")
    shared.peer.run("cache-put", PAUSED, "true", cache_prefix="theirs_")

    assert (None, frozenset()) == (control.read(["high"]).restart, control.read(["high"]).paused)


def test_laravels_own_clearing_of_its_cache_does_no_harm(shared, control):
    first = control.restart()
    control.down()

    shared.change("DELETE FROM cache")

    assert (None, False) == (control.read([]).restart, control.read([]).down)
    assert first <= control.restart()


# The queue here, the cache there


def test_the_cache_of_a_queue_in_a_table_may_be_in_redis(shared, redis_url, redis_socket, tmp_path):
    cache = Peer(redis_socket, PREFIX, tmp_path / "redis.jsonl")
    [key] = cache.run("restart")["keys"]
    with control_of(replace(shared.connection, control_url=redis_url, restart_key=key)) as control:
        theirs = control.read(["default"]).restart
        ours = control.restart()

    assert int(theirs) < ours == int(cache.run("cache-get", RESTART)["value"])
    assert [] == shared.rows("cache")


def test_the_maintenance_mode_may_be_in_the_table_though_the_cache_is_in_redis(shared, redis_url, prefix):
    url, key = shared.connection.url, f"{prefix}illuminate:foundation:down"
    in_redis = replace(shared.connection, control_url=redis_url)
    with control_of(replace(in_redis, maintenance_url=url, maintenance_key=key)) as control:
        before = control.read(["default"]).down
        shared.peer.run("cache-put", "illuminate:foundation:down", '{"retry": 60}', cache_prefix=prefix)

        assert (False, True) == (before, control.read(["default"]).down)

    with control_of(in_redis) as control:
        assert not control.read(["default"]).down


def test_the_cache_of_a_queue_in_redis_may_be_in_a_table(shared, redis_url, prefix):
    theirs = shared.peer.run("restart", cache_prefix=prefix)["value"]
    apart = ConnectionSettings(url=redis_url, control_url=shared.connection.url, restart_key=prefix + RESTART)
    with control_of(apart) as control:
        seen, ours = control.read(["default"]).restart, control.restart()

    assert f"i:{theirs};" == seen
    assert {"value": ours} == shared.peer.run("cache-get", RESTART, cache_prefix=prefix)
