"""Laravel's locks in Redis; the contract is ``stores.locks.Locks``. Source: Illuminate/Cache/RedisLock.php (13.x)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from queuepool.payload.ending import Lock, Unlock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.scan import scanned


class RedisLocks:
    """The locks in one database of Redis."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def release(self, unlocks: Sequence[Unlock]) -> int:
        if not unlocks:
            return 0
        names = [self._keys.lock(lock.name) for lock in unlocks]
        return sum(answer != 0 for answer in self._client.script("unlock", names, [lock.owner for lock in unlocks]))

    def take(self, lock: Lock) -> bool:
        milliseconds = math.ceil(lock.seconds * 1000)
        return bool(self._client.command("SET", self._keys.lock(lock.name), lock.owner, "NX", "PX", milliseconds))

    def held(self, names: Sequence[str]) -> list[str]:
        values = self._client.command("MGET", *map(self._keys.lock, names))
        return [name for name, value in zip(names, values, strict=True) if value is not None]

    def all_keys(self) -> list[str]:
        return [key.decode("utf-8", "replace") for key in scanned(self._client, f"*{PREFIX}*")]
