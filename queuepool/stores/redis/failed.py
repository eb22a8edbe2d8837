"""Failed jobs in Redis: a hash of records by id, and a sorted set of ids by time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from queuepool.payload.ending import Lock, StateRecord
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.wire import whole
from queuepool.stores.set_aside import FailedJob, PendingFailure, RecordKey, Returned, json_in

#: records that are read at once to find their locks: each may be of many kilobytes
_READ = 100


class RedisFailed:
    """The failed store of one connection."""

    def __init__(self, client: Client, keys: Keys, locks: LocksOf | None = None) -> None:
        self._client = client
        self._keys = keys
        self._locks = locks or LocksOf("redis")

    def now(self) -> float:
        seconds, micros = self._client.command("TIME")
        return int(seconds) + int(micros) / 1e6

    def count(self) -> int:
        return int(self._client.command("ZCARD", self._keys.failed_times))

    def page(self, first: int = 0, count: int = 1000) -> list[FailedJob]:
        """``count`` records from number ``first`` on, latest first."""
        rows = self._client.command("ZREVRANGE", self._keys.failed_times, first, first + count - 1, "WITHSCORES")
        texts = self._client.command("HMGET", self._keys.failed, *rows[::2]) if rows else []
        found = zip(rows[::2], texts, rows[1::2], strict=True)
        return [_record(key.decode(), text, float(at)) for key, text, at in found if text]

    def get(self, job_id: str) -> FailedJob | None:
        at = self._client.command("ZSCORE", self._keys.failed_times, job_id)
        text = self._client.command("HGET", self._keys.failed, job_id)
        return _record(job_id, text, float(at)) if at is not None and text is not None else None

    def record(self, failure: PendingFailure) -> None:
        """Store its record; does nothing if this failure is already recorded."""
        mark = {"failure": failure.id}
        text = json.dumps({**failure.record, **mark})
        args = ["", failure.record["id"], text, json.dumps(mark)[1:], failure.id]
        self._client.script("record", [self._keys.failed, self._keys.failed_times], args)

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        """As ``stores.set_aside.FailedStore``, here and below."""
        target = queue or failed.queue
        keys = [
            self._keys.failed,
            self._keys.failed_times,
            self._keys.ready(target),
            self._keys.notify(target),
        ]
        keys += [self._keys.state(state.job_id)] if state else []
        keys += [self._keys.lock(lock.name)] if lock else []
        args: list[Any] = [failed.id, failed.payload, failed.mark]
        args += [state.text, whole(state.seconds)] if state else ["", ""]
        args += [lock.owner, lock.seconds] if lock else ["", ""]
        return Returned(self._client.script("retry", keys, args))

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> int:
        return sum(self._drop(keys[first : first + _READ], finder) for first in range(0, len(keys), _READ))

    def _drop(self, keys: Sequence[RecordKey], finder: Finder) -> int:
        names, args = [self._keys.failed, self._keys.failed_times], []
        for key, payload in zip(keys, self._read(keys, finder), strict=True):
            unlocks = self._locks.here(finder.locks_of(payload)) if payload else ()
            names += [self._keys.lock(lock.name) for lock in unlocks]
            args += [*key, len(unlocks), *(lock.owner for lock in unlocks)]
        return int(self._client.script("drop", names, args))

    def holding(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        parts = (keys[first : first + _READ] for first in range(0, len(keys), _READ))
        return [payload for part in parts for payload in self._read(part, finder) if payload]

    def _read(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        """The payload of each record that may hold a lock; empty for any other."""
        if not finder.marks:
            return [b""] * len(keys)
        texts = self._client.command("HMGET", self._keys.failed, *(key.id for key in keys))
        return [_record("", text, 0.0).payload.encode() if text and finder.may_hold(text) else b"" for text in texts]

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        """Records of jobs that failed before this Unix second, at most ``count``."""
        bounds = ("-inf", f"({moment}", "WITHSCORES", "LIMIT", 0, count)
        rows = self._client.command("ZRANGEBYSCORE", self._keys.failed_times, *bounds)
        return [RecordKey(key.decode(), repr(float(at))) for key, at in zip(rows[::2], rows[1::2], strict=True)]


def _record(key: str, text: bytes, at: float) -> FailedJob:
    found = json_in(text)
    is_sound = isinstance(found, dict) and isinstance(found.get("payload"), str)
    damaged = {"payload": text.decode("utf-8", "backslashreplace"), "exception": "this record is damaged"}
    fields: dict[str, Any] = found if is_sound else damaged  # type: ignore[assignment]
    words = {name: value if isinstance(value := fields.get(name), str) else "" for name in _WORDS}
    attempts = fields.get("attempts")
    return FailedJob(
        id=key, **words, attempts=attempts if isinstance(attempts, int) else None, failed_at=at, mark=repr(at)
    )


_WORDS = ("name", "queue", "connection", "payload", "exception")
