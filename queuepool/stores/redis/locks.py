"""Laravel's locks in Redis. Source: Illuminate/Cache/RedisLock.php (13.x)."""

from __future__ import annotations

from collections.abc import Sequence

from queuepool.payload.ending import Unlock
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys


def release(client: Client, keys: Keys, unlocks: Sequence[Unlock]) -> None:
    """Release the locks; one that another owner holds stays."""
    if unlocks:
        client.script("unlock", [keys.lock(lock.name) for lock in unlocks], [lock.owner for lock in unlocks])
