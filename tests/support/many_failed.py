"""Thousands of failed jobs at once, written past the store's own steps, which would take a minute."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert

from queuepool.jobs.client import Queue
from queuepool.payload.envelope import Envelope, encode
from queuepool.stores.factory import is_redis, keys_of
from queuepool.stores.records import PendingFailure


def failed_in_thousands(queue: Queue, count: int, error: str | None = None, **same: Any) -> list[str]:
    """Records of ``count`` jobs ``do`` that failed in the queue ``default``; returns their ids."""
    jobs = [encode("do", {"number": number, **same}, Envelope(1.0)) for number in range(count)]
    records = [_record(identity, raw.decode(), number, error) for number, (identity, raw) in enumerate(jobs)]
    for first in range(0, count, 1000):
        _write(queue, records[first : first + 1000], first)
    return [identity for identity, _ in jobs]


def failed_now(queue: Queue, error: str, job_id: str = "") -> str:
    """The id of a job ``do`` that has failed with this error just now, in the queue ``default``."""
    identity, raw = encode("do", {}, Envelope(1.0))
    about = _record(job_id or identity, raw.decode(), 0, f"Traceback (most recent call last):\n{error}")
    queue.stores.failed.record(PendingFailure(identity, about))
    return job_id or identity


def _record(identity: str, payload: str, number: int, error: str | None) -> dict[str, Any]:
    about = {"id": identity, "name": "do", "queue": "default", "connection": "default", "attempts": 1}
    kind = "KeyError: 'customer'" if number % 2 else f"ValueError: order {number} is wrong"
    exception = f"Traceback (most recent call last):\n{kind}" if error is None else error
    return {**about, "payload": payload, "exception": exception}


def _write(queue: Queue, records: list[dict[str, Any]], first: int) -> None:
    client = queue.stores.client
    if is_redis(queue.settings.url):
        keys = keys_of(queue.settings)
        texts = [word for one in records for word in (one["id"], json.dumps(one))]
        client.command("HSET", keys.failed, *texts)
        times = [word for number, one in enumerate(records, first) for word in (1000.0 + number / 1e6, one["id"])]
        client.command("ZADD", keys.failed_times, *times)
        return
    table, columns = client.tables.failed_jobs, ("connection", "queue", "payload", "exception")
    at = datetime.fromtimestamp(1000.0, UTC).replace(tzinfo=None)
    text = str(at) if client.engine.dialect.name == "sqlite" else at
    rows = [{**{name: one[name] for name in columns}, "uuid": one["id"], "failed_at": text} for one in records]
    client.transaction(lambda connection: connection.execute(insert(table), rows))
