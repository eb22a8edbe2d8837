"""Laravel's locks in Redis. Source: Illuminate/Cache/RedisLock.php (13.x)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.locks import PREFIX, HeldLock
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys

#: keys that the server looks at in one step
_PAGE = 1000
#: in place of the milliseconds that are left
_FREE = -2


def release(client: Client, keys: Keys, unlocks: Sequence[Unlock]) -> int:
    """As ``stores.locks.Locks``."""
    names = [keys.lock(lock.name) for lock in unlocks]
    return int(client.script("unlock", names, [lock.owner for lock in unlocks])) if names else 0


def take(client: Client, keys: Keys, lock: Lock) -> bool:
    """As ``stores.locks.Locks``."""
    return bool(client.script("take_lock", [keys.lock(lock.name)], [lock.owner, lock.seconds]) == 1)


def held(client: Client, keys: Keys) -> Iterator[HeldLock]:
    """As ``stores.locks.Locks``: by SCAN, since nothing lists them."""
    seen: set[str] = set()  # SCAN may return a key twice
    cursor: Any = 0
    while True:
        cursor, page = client.command("SCAN", cursor, "MATCH", keys.locks_pattern(PREFIX), "COUNT", _PAGE)
        fresh = {key.decode("utf-8", "replace") for key in page} - seen
        yield from _read(client, keys, sorted(fresh))
        seen |= fresh
        if not int(cursor):
            return


def owners(client: Client, keys: Keys, names: Sequence[str]) -> dict[str, str]:
    """As ``stores.locks.Locks``."""
    found = client.command("MGET", *map(keys.lock, names)) if names else []
    return {name: owner.decode("utf-8", "replace") for name, owner in zip(names, found, strict=True) if owner}


def _read(client: Client, keys: Keys, names: Sequence[str]) -> Iterator[HeldLock]:
    words = client.script("held_locks", names, []) if names else []
    for name, owner, left in zip(names, words[::2], words[1::2], strict=True):
        if left != _FREE:
            yield HeldLock(keys.lock_of(name), owner.decode("utf-8", "replace"), None if left < 0 else left / 1000)
