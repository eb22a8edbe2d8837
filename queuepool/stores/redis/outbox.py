"""Failures that wait in Redis for another failed store: a hash of records, and a sorted set of their ids by time."""

from __future__ import annotations

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.set_aside import PendingFailure, json_in, sound_record


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
        found = zip(ids, texts, strict=True)
        return [PendingFailure(key.decode(), sound_record(json_in(text))) for key, text in found if text is not None]

    def drop_pending(self, failure: PendingFailure) -> None:
        self._client.script("recorded", [self._keys.pending, self._keys.pending_times], [failure.id])
