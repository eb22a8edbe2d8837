"""Payloads that cannot be jobs: a list for each queue, with entries ``TIME REASON BYTES``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.set_aside import Quarantined

_PAGE = 100
_ENTRY = re.compile(rb"(\d{1,12}\.\d{6}) ([!-~]{1,64}) (.*)", re.DOTALL)


class RedisQuarantine:
    """The quarantine of one connection; an entry's id is the start of its SHA-1."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def entries(self, queue: str) -> Iterator[Quarantined]:
        """The entries, oldest first, read page by page."""
        return (_parsed(queue, raw) for raw in self._raw(queue))

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None) -> bool:
        """Put it at the tail of its queue, unchanged or as ``payload``; ``False`` when there is no such entry."""
        raw = self._find(queue, entry_id)
        if raw is None:
            return False
        keys = [self._keys.quarantine(queue), self._keys.ready(queue), self._keys.notify(queue)]
        repaired = _parsed(queue, raw).payload if payload is None else payload
        return bool(self._client.script("requeue", keys, [raw, repaired]) == 1)

    def drop(self, queue: str, entry_id: str) -> bool:
        raw = self._find(queue, entry_id)
        return raw is not None and self._client.command("LREM", self._keys.quarantine(queue), 1, raw) == 1

    def _find(self, queue: str, entry_id: str) -> bytes | None:
        return next((raw for raw in self._raw(queue) if _digest(raw) == entry_id), None)

    def _raw(self, queue: str) -> Iterator[bytes]:
        first = 0
        while rows := self._client.command("LRANGE", self._keys.quarantine(queue), first, first + _PAGE - 1):
            yield from rows
            first += _PAGE


def _parsed(queue: str, raw: bytes) -> Quarantined:
    found = _ENTRY.match(raw)
    at, reason, payload = found.groups() if found else (b"0", b"damaged", raw)
    return Quarantined(_digest(raw), queue, reason.decode(), float(at), payload)


def _digest(raw: bytes) -> str:
    return hashlib.sha1(raw).hexdigest()[:12]
