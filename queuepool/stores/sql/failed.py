"""The failed store in Laravel's ``failed_jobs``, uuid flavour."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, func, select

from queuepool.payload import uncounted
from queuepool.stores.base import FailedJob
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.failures import Failures, is_no_job, payload_column
from queuepool.stores.sql.tables import failed_jobs
from queuepool.stores.sql.texts import bytes_of, storable

#: puts a payload to the end of a queue, in the same transaction
Push = Callable[[Connection, str, bytes], None]


class SqlFailed:
    """``push`` is the queue's in the same database; ``None`` where it is elsewhere."""

    def __init__(self, client: Client, failures: Failures, push: Push | None) -> None:
        self._client = client
        self._failures = failures
        self._push = push

    def count(self) -> int:
        counted = select(func.count()).select_from(failed_jobs).where(~is_no_job)
        return int(self._client.ask(lambda c: c.execute(counted).scalar_one()))

    def page(self, first: int = 0, count: int = 1000) -> list[FailedJob]:
        """``count`` records from the ``first`` on, the latest first."""

        def look(connection: Connection) -> list[FailedJob]:
            latest = self._records(connection).where(~is_no_job).order_by(failed_jobs.c.id.desc())
            return [_record(row) for row in connection.execute(latest.offset(first).limit(count))]

        return self._client.ask(look)

    def get(self, job_id: str) -> FailedJob | None:
        def look(connection: Connection) -> FailedJob | None:
            row = connection.execute(self._records(connection).where(failed_jobs.c.uuid == job_id)).first()
            return _record(row) if row else None

        return self._client.ask(look)

    def record(self, record: Mapping[str, Any]) -> str | None:
        """Keep a job that failed elsewhere; ``None`` when it is there already."""

        def work(connection: Connection) -> str | None:
            same = failed_jobs.c.uuid.startswith(record["id"], autoescape=True)
            there = connection.execute(select(payload_column(connection)).where(same)).scalars()
            if storable(record["payload"]).encode() in map(bytes_of, there):
                return None
            return self._failures.add(connection, record)

        return self._client.transaction(work)

    def retry(self, failed: FailedJob, queue: str | None = None) -> bool:
        """Put it back to its queue (or this one) with all its tries; ``False`` when it is gone already.

        Source: Illuminate/Queue/Console/RetryCommand.php (13.x).
        """

        def work(connection: Connection) -> bool:
            if not self._forget(connection, [failed.id]):
                return False
            assert self._push
            self._push(connection, queue or failed.queue, uncounted(failed.payload.encode()))
            return True

        return self._client.transaction(work)

    def forget(self, ids: Sequence[str]) -> int:
        """Drop these records; gives how many there were."""
        return self._client.transaction(lambda c: self._forget(c, ids))

    def older_than(self, moment: float, count: int = 1000) -> list[str]:
        """Ids of jobs that failed before this Unix second, at most ``count``."""

        def look(connection: Connection) -> list[str]:
            at = Clock(connection.dialect).as_seconds(failed_jobs.c.failed_at)
            old = select(failed_jobs.c.uuid).where(at < moment, ~is_no_job).order_by(failed_jobs.c.id).limit(count)
            return list(connection.execute(old).scalars())

        return self._client.ask(look)

    def _forget(self, connection: Connection, ids: Sequence[str]) -> int:
        return connection.execute(delete(failed_jobs).where(failed_jobs.c.uuid.in_(ids))).rowcount

    def _records(self, connection: Connection) -> Select[Any]:
        table, at = failed_jobs.c, Clock(connection.dialect).as_seconds(failed_jobs.c.failed_at)
        shown = (table.uuid, table.queue, table.connection, payload_column(connection), table.exception, at)
        return select(*shown)


def _record(row: Any) -> FailedJob:
    identity, queue, connection, payload, exception, at = row
    text = bytes_of(payload).decode("utf-8", "replace")
    name, attempts = _said(text)
    return FailedJob(identity, name, queue, connection, attempts, text, exception, float(at))


def _said(payload: str) -> tuple[str, int | None]:
    """A record's name and attempts, as far as its payload says; anybody may have written it."""
    try:
        fields = json.loads(payload)
        name = fields.get("displayName") or fields.get("job")
        attempts = fields.get("attempts")
    except (ValueError, RecursionError, AttributeError):
        return "", None
    return str(name or ""), attempts if isinstance(attempts, int) and attempts else None
