"""Failed jobs in Redis: a hash of records by id, and a sorted set of ids by time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from queuepool.payload.ending import StateRecord
from queuepool.stores.redis.client import Client
from queuepool.stores.redis.keys import Keys
from queuepool.stores.redis.wire import whole
from queuepool.stores.set_aside import FailedJob, PendingFailure, RecordKey, json_in


class RedisFailed:
    """The failed store of one connection."""

    def __init__(self, client: Client, keys: Keys) -> None:
        self._client = client
        self._keys = keys

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
        args = ["", failure.record["id"], json.dumps({**failure.record, **mark}), json.dumps(mark)[1:-1]]
        self._client.script("record", [self._keys.failed, self._keys.failed_times], args)

    def retry(self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None) -> bool:
        """Return the job to its queue (or this one) with all its tries; ``False`` when its record is gone."""
        target = queue or failed.queue
        keys = [
            self._keys.failed,
            self._keys.failed_times,
            self._keys.ready(target),
            self._keys.notify(target),
        ]
        args: list[Any] = [failed.id, failed.payload, failed.mark]
        if state:
            keys, args = [*keys, self._keys.state(state.job_id)], [*args, state.text, whole(state.seconds)]
        return bool(self._client.script("retry", keys, args) == 1)

    def drop(self, keys: Sequence[RecordKey]) -> int:
        """Drop exactly these records; returns how many existed."""
        words = [word for key in keys for word in key]
        return int(self._client.script("drop", [self._keys.failed, self._keys.failed_times], words)) if words else 0

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
