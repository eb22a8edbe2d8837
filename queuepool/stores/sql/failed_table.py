"""Rows of Laravel's ``failed_jobs``: failed jobs, and payloads that could not be jobs, which only their text tells."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, func, insert, select

from queuepool.payload.lease import Lease
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of, storable, text_of
from queuepool.stores.sql.names import exactly, is_name
from queuepool.stores.sql.tables import failed_jobs

#: how the text of such a payload begins; what follows is why, in one word
NO_JOB = "queuepool.errors.BadPayload: not a job: "

is_no_job = failed_jobs.c.exception.startswith(NO_JOB, autoescape=True)


class Failures:
    """Within a transaction of somebody else; ``connection`` is Laravel's name for ours."""

    def __init__(self, connection: str) -> None:
        self._name = connection
        self.clock = ""

    def add(self, connection: Connection, record: Mapping[str, Any]) -> None:
        """Keep a record, under its id or, where another job has that, under one of its own.

        Source: DatabaseUuidFailedJobProvider.php, log (13.x).
        """
        row = {name: storable(record[name]) for name in ("connection", "queue", "payload", "exception")}
        self._insert(connection, {**row, "uuid": self._free_id(connection, record["id"])})

    def quarantine(self, connection: Connection, lease: Lease, reason: str) -> None:
        """Keep the bytes of what could not be a job."""
        about = {"uuid": str(uuid.uuid4()), "connection": self._name, "queue": lease.queue}
        self._insert(connection, {**about, "payload": text_of(lease.receipt), "exception": NO_JOB + reason})

    def count_quarantined(self, connection: Connection, queue: str) -> int:
        found = select(func.count()).where(is_name(connection.dialect, failed_jobs.c.queue, queue), is_no_job)
        return int(connection.execute(found).scalar_one())

    def queues_quarantined(self, connection: Connection) -> list[str]:
        """The queues of payloads that were set aside."""
        found = select(exactly(connection.dialect, failed_jobs.c.queue)).where(is_no_job).distinct()
        return [bytes_of(name).decode() for name in connection.execute(found).scalars()]

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> None:
        clock = Clock(connection.dialect, self.clock)
        connection.execute(insert(failed_jobs).values(failed_at=clock.as_timestamp(clock.down()), **row))

    def _free_id(self, connection: Connection, wanted: str) -> str:
        # Somebody may push one id twice: the second must not take the place of the first. Whoever else looks for a free
        # one waits here, behind the record that has the id itself, until this transaction is over.
        found, number = wanted, 1
        there = select(failed_jobs.c.id).with_for_update()
        while connection.execute(there.where(failed_jobs.c.uuid == found)).first():
            number += 1
            found = f"{wanted}-{number}"
        return found


def payload_column(connection: Connection) -> ColumnElement[Any]:
    """As bytes where a text may be none."""
    column = failed_jobs.c.payload
    return cast(column, LargeBinary) if connection.dialect.name == "sqlite" else column
