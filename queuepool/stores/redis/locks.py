"""Laravel's locks in Redis; the contract is ``stores.locks.Locks``. Source: Illuminate/Cache/RedisLock.php (13.x)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queuepool.payload.ending import Lock, Unlock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.locks import MAX_OWNER, HeldLock
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.scan import pages, scanned

#: in place of the milliseconds that are left
_FREE = -2


class RedisLocks:
    """The locks in one database of Redis."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def release(self, unlocks: Sequence[Unlock]) -> int:
        """As ``stores.locks.Locks``, here and below."""
        if not unlocks:
            return 0
        names = [self._keys.lock(lock.name) for lock in unlocks]
        return sum(answer != 0 for answer in self._client.script("unlock", names, [lock.owner for lock in unlocks]))

    def take(self, lock: Lock) -> bool:
        return bool(self._client.script("take_lock", [self._keys.lock(lock.name)], [lock.owner, lock.seconds]) == 1)

    def held(self) -> Iterator[HeldLock]:
        for page in pages(self._client, self._keys.locks_pattern(PREFIX)):
            yield from self._read(sorted(key.decode("utf-8", "replace") for key in page))

    def owners(self, names: Sequence[str]) -> dict[str, str]:
        found = self._client.command("MGET", *map(self._keys.lock, names)) if names else []
        held = ((name, owner) for name, owner in zip(names, found, strict=True) if owner is not None)
        return {name: owner[:MAX_OWNER].decode("utf-8", "replace") for name, owner in held}

    def all_keys(self) -> list[str]:
        return [key.decode("utf-8", "replace") for key in scanned(self._client, f"*{PREFIX}*")]

    def _read(self, keys: Sequence[str]) -> Iterator[HeldLock]:
        words = self._client.script("held_locks", keys, [MAX_OWNER]) if keys else []
        for key, owner, left in zip(keys, words[::2], words[1::2], strict=True):
            if left != _FREE:
                seconds = None if left < 0 else left / 1000
                yield HeldLock(self._keys.lock_of(key), owner.decode("utf-8", "replace"), seconds)
