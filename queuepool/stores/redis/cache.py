"""Named values and the pools' notices in Redis; the contract is ``stores.control.Cache``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from queuepool.errors import StoreError
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import MAX_VALUE
from queuepool.stores.notices import MAX_BYTES, MAX_OF_ALL, notice_in
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys


class RedisCache:
    """The cache on one connection. Names are full keys; the notices are under our own."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        # No script may do it where the user may only read these keys, so what is too long is sent all the same.
        return [value and value[:MAX_VALUE] for value in self._client.command("MGET", *names)]

    def put(self, name: str, value: bytes) -> None:
        self._client.script_in_time("put_value", [name], [value])

    def remove(self, name: str) -> bool:
        return bool(self._client.script_in_time("remove_value", [name]) == 1)

    def stamp(self, name: str) -> int:
        return int(self._client.script("restart", [name], []))

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        self._client.script("publish", [self._keys.pools], [pool, json.dumps({**notice, "at": self._now()})])

    def withdraw(self, pool: str) -> None:
        self._client.command("HDEL", self._keys.pools, pool)

    def notices(self, within: float) -> list[dict[str, Any]]:
        now, found = self._now(), []
        words = self._client.script("read_texts", [self._keys.pools], [MAX_BYTES, MAX_OF_ALL])
        for pool, text in zip(words[::2], words[1::2], strict=True):
            notice = notice_in(text)
            if notice and now - notice["at"] <= within:
                found.append(notice)
            elif notice is None or now - notice["at"] > NOTICE_KEPT:
                with suppress(StoreError):  # a user who may only read leaves it to others
                    self._client.command("HDEL", self._keys.pools, pool)
        return found

    def _now(self) -> int:
        return int(self._client.command("TIME")[0])
