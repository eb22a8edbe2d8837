"""Failed jobs in Redis: a hash of records by id, a sorted set of ids by time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from queuepool.stores.base import FailedJob
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys


class RedisFailed:
    """The failed store of one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

    def count(self) -> int:
        return int(self._client.command("ZCARD", self._keys.failed_times))

    def page(self, first: int = 0, count: int = 1000) -> list[FailedJob]:
        """``count`` records from the ``first`` on, the latest first."""
        rows = self._client.command("ZREVRANGE", self._keys.failed_times, first, first + count - 1, "WITHSCORES")
        texts = self._client.command("HMGET", self._keys.failed, *rows[::2]) if rows else []
        found = zip(rows[::2], texts, rows[1::2], strict=True)
        return [_record(key.decode(), text, float(at)) for key, text, at in found if text]

    def get(self, job_id: str) -> FailedJob | None:
        at = self._client.command("ZSCORE", self._keys.failed_times, job_id)
        text = self._client.command("HGET", self._keys.failed, job_id)
        return _record(job_id, text, float(at)) if at is not None and text is not None else None

    def record(self, record: Mapping[str, Any]) -> str | None:
        """Keep a job that failed elsewhere; ``None`` when it is there already."""
        payload = json.dumps({"payload": record["payload"]})[1:-1]
        args = ["", record["id"], json.dumps(record), payload]
        kept = self._client.script("record", [self._keys.failed, self._keys.failed_times], args)
        return kept.decode() or None

    def retry(self, failed: FailedJob, queue: str | None = None) -> bool:
        """Put it back to its queue (or this one) with all its tries; ``False`` when it is gone already."""
        target = queue or failed.queue
        keys = [
            self._keys.failed,
            self._keys.failed_times,
            self._keys.ready(target),
            self._keys.notify(target),
        ]
        return bool(self._client.script("retry", keys, [failed.id, failed.payload]) == 1)

    def forget(self, ids: Sequence[str]) -> int:
        """Drop these records; gives how many there were."""
        return int(self._client.script("forget", [self._keys.failed, self._keys.failed_times], ids)) if ids else 0

    def older_than(self, moment: float, count: int = 1000) -> list[str]:
        """Ids of jobs that failed before this Unix second, at most ``count``."""
        rows = self._client.command("ZRANGEBYSCORE", self._keys.failed_times, "-inf", f"({moment}", "LIMIT", 0, count)
        return [row.decode() for row in rows]


def _record(key: str, text: bytes, at: float) -> FailedJob:
    fields: dict[str, Any] = json.loads(text)
    return FailedJob(id=key, **{name: fields.get(name, "") for name in _STORED}, failed_at=at)


_STORED = ("name", "queue", "connection", "attempts", "payload", "exception")
