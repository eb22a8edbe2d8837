"""Measures queues in a database, which has no count of its rows: so it counts no further than ten thousand."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, select

from queuepool.stores.measured import Measured
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.failed_table import Failures
from queuepool.stores.sql.names import is_name

_MOST = 10_000
_QUEUE: Any = bindparam("name")


class SqlMeasures:
    """The age is exact: a row says since when it may be taken."""

    def __init__(self, client: Client, failures: Failures) -> None:
        self._client = client
        self._failures = failures

    def of(self, queue: str) -> Measured:
        return self._client.ask(lambda connection: self._read(connection, queue))

    def _read(self, connection: Connection, queue: str) -> Measured:
        counts, next_ready = _statements(self._client.tables.jobs, connection)
        ready, delayed, reserved, rows, now = connection.execute(counts, {"name": queue}).one()
        since = connection.execute(next_ready, {"name": queue}).scalar_one_or_none() if ready or rows > _MOST else None
        oldest = 0.0 if since is None else max(float(now) - since, 0.0)
        quarantined = self._failures.count_quarantined(connection, queue)
        return Measured(ready, delayed, reserved, quarantined, oldest, float(now), is_at_least=rows > _MOST)


def _statements(jobs: Any, connection: Connection) -> tuple[Any, Any]:
    """The counts of the queue's rows, and when the next one became ready."""
    dialect = connection.dialect
    clock, in_queue = Clock(dialect), is_name(dialect, jobs.c.queue, _QUEUE)
    is_free, is_due = jobs.c.reserved_at.is_(None), jobs.c.available_at <= clock.past()
    state = case((~is_free, "reserved"), (is_due, "ready"), else_="delayed").label("state")
    rows = select(state).where(in_queue).limit(_MOST + 1).subquery()
    counts = [func.count(case((rows.c.state == name, 1))) for name in ("ready", "delayed", "reserved")]
    every = select(*counts, func.count(), clock.now()).select_from(rows)
    return every, select(jobs.c.available_at).where(and_(in_queue, is_free, is_due)).order_by(jobs.c.id).limit(1)
