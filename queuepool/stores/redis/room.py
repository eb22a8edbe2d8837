"""Whether the server has room for anything new."""

from __future__ import annotations

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys


class RedisRoom:
    """Asks by a write that a full server (``maxmemory``, ``noeviction``) refuses, and any other does not carry out."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def ask(self) -> None:
        """Raises ``StoreFull`` if the server has none, and ``StoreDown``."""
        self._client.command("SET", self._keys.room, "", "XX")  # only a key that is there, and none is
