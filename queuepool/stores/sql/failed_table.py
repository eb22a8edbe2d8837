"""Rows of Laravel's ``failed_jobs``: failed jobs, and quarantined payloads, which only their text distinguishes."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, LargeBinary, Table, and_, cast, func, insert, literal, select

from queuepool.payload.lease import Lease
from queuepool.stores.sql.charsets import Charsets
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of, text_of
from queuepool.stores.sql.names import exactly, is_name

#: how the text of a quarantined payload begins; the reason follows, in one word
NO_JOB = "queuepool.errors.BadPayload: not a job: "
#: jobs with one id whose records have numbers
_NUMBERED = 32


def is_no_job(failed_jobs: Table) -> ColumnElement[bool]:
    """Whether a row is a quarantined payload."""
    return failed_jobs.c.exception.startswith(NO_JOB, autoescape=True)


class Failures:
    """Writes and counts rows within a caller's transaction; ``connection`` is Laravel's name for our connection."""

    def __init__(self, connection: str, table: Table) -> None:
        self._name = connection
        self.table = table
        self.charsets = Charsets(table)
        self.clock = ""

    def add(self, connection: Connection, record: Mapping[str, Any], failure: str = "") -> None:
        """Store a record under its id or, if another job has that, under a new one. ``failure`` as for ``names``.

        Source: DatabaseUuidFailedJobProvider.php, log (13.x).
        """
        names = self.names(connection, record["id"], failure or secrets.token_hex(8))
        row = {name: record[name] for name in ("connection", "queue", "payload", "exception")}
        self._insert(connection, {**row, "uuid": self._free_id(connection, names)})

    def names(self, connection: Connection, job_id: str, failure: str) -> list[str]:
        """The ids that the record of a failure may have; the last is its own, by what tells it from all others.

        So that no more are looked at, however many jobs have one id.
        """
        first = self.charsets.text(connection, "uuid", job_id)
        own = hashlib.sha256(failure.encode()).hexdigest()[:16]
        return [first, *(f"{first}-{number}" for number in range(2, _NUMBERED)), f"{first}-{own}"]

    def quarantine(self, connection: Connection, lease: Lease, reason: str) -> None:
        """Store the bytes of a payload that cannot be a job."""
        about = {"uuid": str(uuid.uuid4()), "connection": self._name, "queue": lease.queue}
        self._insert(connection, {**about, "payload": lease.receipt, "exception": NO_JOB + reason})

    def quarantine_row(self, connection: Connection, jobs: Table, number: int, reason: str) -> None:
        """The same for a row of the jobs, whose payload this process does not read."""
        clock = Clock(connection.dialect, self.clock)
        row: dict[str, Any] = {
            "uuid": literal(str(uuid.uuid4())), "connection": literal(self._name), "queue": jobs.c.queue,
            "payload": jobs.c.payload, "exception": literal(NO_JOB + reason),
            "failed_at": clock.as_timestamp(clock.down()),
        }  # fmt: skip
        copy = select(*row.values()).where(jobs.c.id == number)
        connection.execute(insert(self.table).from_select(list(row), copy))

    def count_quarantined(self, connection: Connection, queue: str) -> int:
        """How many payloads of this queue are quarantined."""
        found = select(func.count()).where(self.is_quarantined(connection, queue))
        return int(connection.execute(found).scalar_one())

    def is_quarantined(self, connection: Connection, queue: str) -> ColumnElement[bool]:
        """Whether a row is a quarantined payload of this queue."""
        name = self.charsets.text(connection, "queue", queue)
        return and_(is_name(connection.dialect, self.table.c.queue, name), is_no_job(self.table))

    def queues_quarantined(self, connection: Connection) -> list[str]:
        """The queues that have quarantined payloads."""
        found = select(exactly(connection.dialect, self.table.c.queue)).where(is_no_job(self.table)).distinct()
        return [bytes_of(name).decode() for name in connection.execute(found).scalars()]

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> None:
        clock = Clock(connection.dialect, self.clock)
        held = {column: self._held(connection, column, value) for column, value in row.items()}
        connection.execute(insert(self.table).values(failed_at=clock.as_timestamp(clock.down()), **held))

    def _held(self, connection: Connection, column: str, value: str | bytes) -> str | bytes:
        """The value as the column holds it; bytes that are no text are kept as they are where a column takes them."""
        if isinstance(value, bytes):
            if connection.dialect.name == "sqlite":
                return text_of(value)
            if value.isascii() and connection.dialect.name != "postgresql":
                return value.decode()  # with the NUL that makes it no job
            value = value.decode("utf-8", "backslashreplace")
        as_held = self.charsets.json if column == "payload" else self.charsets.text
        return as_held(connection, column, value)

    def _free_id(self, connection: Connection, names: Sequence[str]) -> str:
        # An id may be pushed twice: the second job must not replace the first. Another transaction that needs a free id
        # waits here, for the lock on the record with the original id, until this one is over.
        existing = select(self.table.c.id).with_for_update()
        taken = (connection.execute(existing.where(self.table.c.uuid == name)).first() for name in names)
        return next((name for name, row in zip(names, taken, strict=True) if not row), names[-1])


def payload_column(connection: Connection, table: Table) -> ColumnElement[Any]:
    """The payload; as bytes in SQLite, where a text may be invalid."""
    column = table.c.payload
    return cast(column, LargeBinary) if connection.dialect.name == "sqlite" else column
