"""Where Laravel's locks and counters are: at its cache, under its prefix, wherever the queue is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from queuepool.config.settings import ConnectionSettings
from tests.support.drivers import opened

RESTART = "app_database_app_cache_illuminate:queue:restart"
OVERLAP = "laravel-queue-overlap:App\\Jobs\\Send:7"


@pytest.mark.parametrize("place", ["beside the queue", "in a cache elsewhere"])
def test_locks_and_counters_are_under_the_prefix_of_the_cache(connection, sqlite_url, server, place):
    settings = replace(connection, prefix="app_database_", restart_key=RESTART)
    if place == "in a cache elsewhere":
        settings = ConnectionSettings(
            url=sqlite_url, embedded=True, control_url=connection.url, restart_key=RESTART, prefix="app_database_"
        )
    with opened(settings) as stores:
        cache = stores.laravel_cache
        assert cache.take(OVERLAP, "one", 60.0)
        assert not cache.take(OVERLAP, "another", 60.0)
        assert None is cache.count_use("0123456789abcdef", 3, 60)
        found = {key: server.get(key) for key in keys_of(server)}
        assert {"lock": b"one", "counter": b"1"} == {name: found[key] for name, key in KEYS.items()}
        cache.release(OVERLAP, "one")
        cache.forget_uses("0123456789abcdef")
        assert not {*KEYS.values()} & {*keys_of(server)}


KEYS = {"lock": f"app_database_app_cache_{OVERLAP}", "counter": "app_database_app_cache_0123456789abcdef"}


def keys_of(server: redis.Redis) -> list[str]:
    """All keys that hold a text."""
    return [key.decode() for key in server.keys("app_database_app_cache_*")]
