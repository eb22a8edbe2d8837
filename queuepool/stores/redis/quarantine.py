"""Payloads that cannot be jobs: a list for each queue, with entries ``TIME REASON BYTES``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from queuepool.payload.ending import Lock, Unlock
from queuepool.stores.locks import LocksOf
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.set_aside import Quarantined, Returned

_PAGE = 100


class RedisQuarantine:
    """The quarantine of one connection; an entry's id is the start of its SHA-1."""

    def __init__(self, client: Client, keys: Keys, locks: LocksOf) -> None:
        self._client = client
        self._keys = keys
        self._locks = locks

    def entries(self, queue: str) -> Iterator[Quarantined]:
        """As ``stores.set_aside.QuarantineStore``, here and below."""
        return (_parsed(queue, raw) for raw in self._raw(queue))

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        raw = self._find(queue, entry_id)
        if raw is None:
            return Returned.GONE
        keys = [self._keys.quarantine(queue), self._keys.ready(queue), self._keys.notify(queue)]
        repaired = _parsed(queue, raw).payload if payload is None else payload
        keys += [self._keys.lock(lock.name)] if lock else []
        args = [raw, repaired, *([lock.owner, lock.seconds] if lock else [])]
        return Returned(self._client.script("requeue", keys, args))

    def drop(self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = ()) -> bool:
        raw = self._find(queue, entry_id)
        if raw is None:
            return False
        here = self._locks.here(unlocks)
        names = [self._keys.quarantine(queue), *(self._keys.lock(lock.name) for lock in here)]
        return bool(self._client.script("drop_entry", names, [raw, *(lock.owner for lock in here)]) == 1)

    def _find(self, queue: str, entry_id: str) -> bytes | None:
        return next((raw for raw in self._raw(queue) if _digest(raw) == entry_id), None)

    def _raw(self, queue: str) -> Iterator[bytes]:
        first = 0
        while rows := self._client.command("LRANGE", self._keys.quarantine(queue), first, first + _PAGE - 1):
            yield from rows
            first += _PAGE


def _parsed(queue: str, raw: bytes) -> Quarantined:
    at, reason, payload = raw.split(b" ", 2)
    return Quarantined(_digest(raw), queue, reason.decode(), float(at), payload)


def _digest(raw: bytes) -> str:
    return hashlib.sha1(raw).hexdigest()[:12]
