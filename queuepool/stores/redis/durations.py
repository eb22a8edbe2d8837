"""The windows of Laravel's duration limiters in Redis; see ``stores.laravel_cache.Uses``."""

from __future__ import annotations

from queuepool.stores.redis.client import RedisClient
from queuepool.stores.redis.wire import Keys


class RedisDurations:
    """A hash for each name, under Laravel's prefix of Redis."""

    def __init__(self, client: RedisClient, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        wait = int(self._client.script("count_duration", [self._keys.laravel(name)], ["", most, seconds]))
        return wait if wait >= 0 else None

    def forget_uses(self, name: str) -> None:
        self._client.script_in_time("remove_value", [self._keys.laravel(name)], [])
