"""Failures that wait in Redis for another failed store: a hash of records, and a sorted set of their ids by time."""

from __future__ import annotations

import json

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.set_aside import PendingFailure


class RedisOutbox:
    """The contract is ``stores.set_aside.Outbox``; ``fail.lua`` fills it."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def count_pending(self) -> int:
        return int(self._client.command("ZCARD", self._keys.pending_times))

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]:
        ids = self._client.command("ZRANGE", self._keys.pending_times, first, first + count - 1)
        texts = self._client.command("HMGET", self._keys.pending, *ids) if ids else []
        return [PendingFailure(key.decode(), json.loads(text)) for key, text in zip(ids, texts, strict=True) if text]

    def drop_pending(self, failure: PendingFailure) -> None:
        self._client.script("recorded", [self._keys.pending, self._keys.pending_times], [failure.id])
