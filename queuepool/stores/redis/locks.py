"""Laravel's locks in Redis; the contract is ``stores.locks.Locks``. Source: Illuminate/Cache/RedisLock.php (13.x)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.locks import PREFIX, HeldLock
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.scan import scanned

#: keys that the server looks at in one step
_PAGE = 1000
#: in place of the milliseconds that are left
_FREE = -2


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
        return bool(self._client.script("take_lock", [self._keys.lock(lock.name)], [lock.owner, lock.seconds]) == 1)

    def held(self) -> Iterator[HeldLock]:
        """As the contract says: by SCAN, since nothing lists them."""
        seen: set[str] = set()  # SCAN may return a key twice
        cursor: Any = 0
        while True:
            words = "SCAN", cursor, "MATCH", self._keys.locks_pattern(PREFIX), "COUNT", _PAGE
            cursor, page = self._client.command(*words)
            fresh = {key.decode("utf-8", "replace") for key in page} - seen
            yield from self._read(sorted(fresh))
            seen |= fresh
            if not int(cursor):
                return

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        found = self._client.command("MGET", *map(self._keys.lock, names)) if names else []
        return {name: owner.decode("utf-8", "replace") for name, owner in zip(names, found, strict=True) if owner}

    def all_keys(self) -> list[str]:
        return [key.decode("utf-8", "replace") for key in scanned(self._client, f"*{PREFIX}*")]

    def _read(self, names: Sequence[str]) -> Iterator[HeldLock]:
        words = self._client.script("held_locks", names, []) if names else []
        for key, owner, left in zip(names, words[::2], words[1::2], strict=True):
            if left != _FREE:
                name = self._keys.lock_of(key)
                yield HeldLock(name, owner.decode("utf-8", "replace"), None if left < 0 else left / 1000)
