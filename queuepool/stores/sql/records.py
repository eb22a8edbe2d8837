"""Records set aside in a database; see ``stores.records.Records``.

Failed jobs are rows of Laravel's ``failed_jobs``, with a uuid column. So are quarantined payloads, which only their
exception text distinguishes; Laravel's own commands show them too. Failures that wait for another failed store are rows
of ``jobs``, on a queue that no worker serves: they need no table of ours, and Laravel's cache, which holds our other
values, may be emptied at any time.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    Table,
    and_,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
)

from queuepool.payload.envelope import uncounted
from queuepool.payload.lease import Lease, Lock, StateRecord, Unlock
from queuepool.payload.members import MemberOf, member_in_text
from queuepool.stores.locks import NO_LOCKS, Finder, LocksOf
from queuepool.stores.records import (
    FailedJob,
    PendingFailure,
    Quarantined,
    RecordKey,
    Retrying,
    Returned,
    json_in,
    sound_record,
)
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of, text_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import may_hold
from queuepool.stores.sql.members import SqlMembers
from queuepool.stores.sql.texts import Charsets, exactly, is_name
from queuepool.stores.sql.values import SqlValues

#: how the exception text of a quarantined payload begins; the reason follows, one word
NO_JOB = "queuepool.errors.BadPayload: not a job: "
#: the queue of the failures that wait
PENDING = "queuepool:failed:pending"
#: precedes the failure's id in the exception text
_FAILURE = "queuepool failure "
#: how many records of jobs with the same id get a number
_NUMBERED = 32
#: entries of the quarantine that are read at once
_PAGE = 100


class SqlRecords:
    """The records of one database; ``connection`` is Laravel's name for our connection.

    A retried job is pushed to ``table``, with its state and lock in ``values``. An entry's id is its record's uuid.
    """

    def __init__(
        self, client: SqlClient, connection: str, table: JobsTable, values: SqlValues, locks_of: LocksOf
    ) -> None:
        self._client = client
        self._name = connection
        self._jobs = table
        self._members = SqlMembers(client, table)
        self._values = values
        self._locks_of = locks_of
        self._table = client.tables.failed_jobs
        self._charsets = Charsets(self._table)
        #: '' for the database's, or a test's Unix seconds as text
        self.clock = ""

    # Failed jobs

    def count(self) -> int:
        counted = select(func.count()).select_from(self._table).where(~self._is_no_job)
        return int(self._client.ask(lambda c: c.execute(counted).scalar_one()))

    def page(self, after: RecordKey | None = None, count: int = 1000) -> list[FailedJob]:
        def read(connection: Connection) -> list[FailedJob]:
            latest = self._records(connection).where(~self._is_no_job).order_by(self._table.c.id.desc())
            if after:
                latest = latest.where(self._table.c.id < int(after.mark))
            return [_record(row) for row in connection.execute(latest.limit(count))]

        return self._client.ask(read)

    def get(self, job_id: str) -> FailedJob | None:
        def read(connection: Connection) -> FailedJob | None:
            same = self._table.c.uuid == self._charsets.text(connection, "uuid", job_id)
            row = connection.execute(self._records(connection).where(same)).first()
            return _record(row) if row else None

        return self._client.ask(read)

    def record(self, failure: PendingFailure) -> None:
        """As the contract says.

        The failure's id is the last line of the exception text, as Laravel's table has no other place for it.
        """
        line = f"\n{_FAILURE}{failure.id}"
        record = {**failure.record, "exception": failure.record["exception"] + line}

        def work(connection: Connection) -> None:
            names = self._ids(connection, record["id"], failure.id)
            is_this = self._table.c.exception.endswith(line, autoescape=True)
            same = select(self._table.c.id).where(self._table.c.uuid.in_(names), is_this)
            if not connection.execute(same.limit(1)).first():
                self.add(connection, record, failure.id)

        self._client.transaction(work)

    def now(self) -> float:
        return float(self._client.ask(lambda c: c.execute(select(Clock(c.dialect).now())).scalar_one()))

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        return self.retry_all([Retrying(failed, state, lock)], queue)[0]

    def retry_all(self, jobs: Sequence[Retrying], queue: str | None = None) -> list[Returned]:
        """As ``stores.records.FailedStore``. Source: Illuminate/Queue/Console/RetryCommand.php (13.x)."""

        def work(connection: Connection) -> list[Returned]:
            existing = self._locked(connection, [job.failed.key for job in jobs])
            answers = [self._may_return(connection, job, existing) for job in jobs]
            back = [job for job, answer in zip(jobs, answers, strict=True) if answer]
            for target in dict.fromkeys(queue or job.failed.queue for job in back):
                raws = [job.failed.payload for job in back if (queue or job.failed.queue) == target]
                self._jobs.push(connection, target, [uncounted(raw.encode()) for raw in raws])
            self._drop(connection, [job.failed.key for job in back])
            for job in back:
                self._resume(connection, job)
            return answers

        if any(job.lock for job in jobs):
            self._values.examine()
        return self._client.transaction(work) if jobs else []

    def resume(self, job: Retrying, member: MemberOf, queue: str | None = None) -> Returned:
        def work(connection: Connection) -> Returned:
            if job.lock and not self._values.take_within(connection, job.lock):
                return Returned.HELD
            self._jobs.push(connection, queue or job.failed.queue, [uncounted(job.failed.payload.encode())])
            self._resume(connection, job)
            return Returned.DONE

        if job.lock:
            self._values.examine()
        return self._client.transaction(work)

    def _resume(self, connection: Connection, job: Retrying) -> None:
        if member := member_in_text(job.failed.payload):
            self._members.resume(connection, member.flow, member.number)
        if job.state:
            self._values.write_state(connection, job.state)

    def _locked(self, connection: Connection, keys: Sequence[RecordKey]) -> set[str]:
        """The marks of these records that exist; they are locked until the transaction ends."""
        records = select(self._table.c.id).where(self._are(keys)).order_by(self._table.c.id).with_for_update()
        return set(map(str, connection.execute(records).scalars()))

    def _may_return(self, connection: Connection, job: Retrying, existing: set[str]) -> Returned:
        """Whether the job can be put back; takes its lock."""
        if job.failed.mark not in existing:
            return Returned.GONE
        existing.remove(job.failed.mark)  # so that it is put back once, though it may be given twice
        if job.lock and not self._values.take_within(connection, job.lock):
            return Returned.HELD
        return Returned.DONE

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> list[bool]:
        def work(connection: Connection) -> set[str]:
            existing = self._locked(connection, keys)
            for payload in self._holding(connection, keys, usable):
                self._values.release_within(connection, self._locks_of.here(usable.locks_of(payload)))
            self._drop(connection, keys)
            return existing

        usable = self._values.usable(finder)
        dropped = self._client.transaction(work) if keys else set()
        return [key.mark in dropped for key in keys]

    def holding(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        return self._client.ask(lambda c: self._holding(c, keys, finder)) if keys else []

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        def read(connection: Connection) -> list[RecordKey]:
            at = Clock(connection.dialect).as_seconds(self._table.c.failed_at)
            keys = select(self._table.c.uuid, self._table.c.id).where(at < moment, ~self._is_no_job)
            rows = connection.execute(keys.order_by(self._table.c.id).limit(count))
            return [RecordKey(identity, str(number)) for identity, number in rows]

        return self._client.ask(read)

    def _drop(self, connection: Connection, keys: Sequence[RecordKey]) -> None:
        """Drop by row number: another record may now have the uuid of a dropped one."""
        connection.execute(delete(self._table).where(self._are(keys)))

    def _are(self, keys: Sequence[RecordKey]) -> ColumnElement[bool]:
        return self._table.c.id.in_([int(key.mark) for key in keys])

    def _holding(self, connection: Connection, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        column = payload_column(connection, self._table)
        found = select(column).where(self._are(keys), may_hold(self._table, finder))
        return [bytes_of(payload) for payload in connection.execute(found).scalars()] if finder.marks else []

    def _records(self, connection: Connection) -> Select[Any]:
        table, at = self._table.c, Clock(connection.dialect).as_seconds(self._table.c.failed_at)
        payload = payload_column(connection, self._table)
        return select(table.id, table.uuid, table.queue, table.connection, payload, table.exception, at)

    # Rows of ``failed_jobs`` in a caller's transaction, which ends a job

    def add(self, connection: Connection, record: Mapping[str, Any], failure: str = "") -> None:
        """Store a record under its id or, if that is taken, under a new one. ``failure`` as for ``_ids``.

        Source: DatabaseUuidFailedJobProvider.php, log (13.x).
        """
        names = self._ids(connection, record["id"], failure or secrets.token_hex(8))
        row = {name: record[name] for name in ("connection", "queue", "payload", "exception")}
        self._insert(connection, {**row, "uuid": self._free_id(connection, names)})

    def _ids(self, connection: Connection, job_id: str, failure: str) -> list[str]:
        """The ids that the record of a failure may have; the last, a digest, belongs to this failure only.

        So only a few are tried, however many jobs have the same id.
        """
        first = self._charsets.text(connection, "uuid", job_id)
        own = hashlib.sha256(failure.encode()).hexdigest()[:16]
        return [first, *(f"{first}-{number}" for number in range(2, _NUMBERED)), f"{first}-{own}"]

    def quarantine(self, connection: Connection, lease: Lease, reason: str) -> None:
        """Store the bytes of a payload that cannot be a job."""
        about = {"uuid": str(uuid.uuid4()), "connection": self._name, "queue": lease.queue}
        self._insert(connection, {**about, "payload": lease.receipt, "exception": NO_JOB + reason})

    def quarantine_row(self, connection: Connection, jobs: Table, number: int, reason: str) -> None:
        """The same for a row of ``jobs``, without reading its payload into this process."""
        clock = Clock(connection.dialect, self.clock)
        row: dict[str, Any] = {
            "uuid": literal(str(uuid.uuid4())), "connection": literal(self._name), "queue": jobs.c.queue,
            "payload": jobs.c.payload, "exception": literal(NO_JOB + reason),
            "failed_at": clock.as_timestamp(clock.down()),
        }  # fmt: skip
        copy = select(*row.values()).where(jobs.c.id == number)
        connection.execute(insert(self._table).from_select(list(row), copy))

    def count_quarantined(self, connection: Connection, queue: str) -> int:
        """How many payloads of this queue are quarantined."""
        found = select(func.count()).where(self._is_quarantined(connection, queue))
        return int(connection.execute(found).scalar_one())

    def _is_quarantined(self, connection: Connection, queue: str) -> ColumnElement[bool]:
        """Whether a row is a quarantined payload of this queue."""
        name = self._charsets.text(connection, "queue", queue)
        return and_(is_name(connection.dialect, self._table.c.queue, name), self._is_no_job)

    @property
    def _is_no_job(self) -> ColumnElement[bool]:
        """Whether a row is a quarantined payload."""
        return self._table.c.exception.startswith(NO_JOB, autoescape=True)

    def queues_quarantined(self, connection: Connection) -> list[str]:
        """The queues that have quarantined payloads."""
        found = select(exactly(connection.dialect, self._table.c.queue)).where(self._is_no_job).distinct()
        return [bytes_of(name).decode() for name in connection.execute(found).scalars()]

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> None:
        clock = Clock(connection.dialect, self.clock)
        held = {column: self._held(connection, column, value) for column, value in row.items()}
        connection.execute(insert(self._table).values(failed_at=clock.as_timestamp(clock.down()), **held))

    def _held(self, connection: Connection, column: str, value: str | bytes) -> str | bytes:
        """The value as the column can hold it; bytes that are not text stay bytes where the column takes them."""
        if isinstance(value, bytes):
            if connection.dialect.name == "sqlite":
                return text_of(value)
            if value.isascii() and connection.dialect.name != "postgresql":
                return value.decode()  # with the NUL for which it was quarantined
            value = value.decode("utf-8", "backslashreplace")
        as_held = self._charsets.json if column == "payload" else self._charsets.text
        return as_held(connection, column, value)

    def _free_id(self, connection: Connection, names: Sequence[str]) -> str:
        # An id may be pushed twice: the second job must not replace the first. Another transaction that needs a free id
        # waits here for the lock on the record with the original id, until this one ends.
        existing = select(self._table.c.id).with_for_update()
        taken = (connection.execute(existing.where(self._table.c.uuid == name)).first() for name in names)
        return next((name for name, row in zip(names, taken, strict=True) if not row), names[-1])

    # The outbox; an id is the row's number and a token

    def count_pending(self) -> int:
        counted = select(func.count()).where(self._client.tables.jobs.c.queue == PENDING)
        return int(self._client.ask(lambda c: c.execute(counted).scalar_one()))

    def pending(self, first: int = 0, count: int = 100) -> list[PendingFailure]:
        jobs = self._client.tables.jobs
        rows = select(jobs.c.id, jobs.c.payload).where(jobs.c.queue == PENDING).order_by(jobs.c.id)

        def read(connection: Connection) -> list[PendingFailure]:
            return [_failure(*row) for row in connection.execute(rows.offset(first).limit(count))]

        return self._client.ask(read)

    def drop_pending(self, failure: PendingFailure) -> None:
        jobs, number = self._client.tables.jobs, int(failure.id.partition("-")[0])
        gone = delete(jobs).where(jobs.c.id == number, jobs.c.queue == PENDING)
        self._client.ask(lambda c: c.execute(gone))

    # The quarantine

    def quarantined(self, queue: str) -> Iterator[Quarantined]:
        last = 0
        while rows := self._client.ask(lambda c, last=last: self._entries(c, queue, last)):  # type: ignore[misc]
            yield from (_entry(row) for row in rows)
            last = rows[-1].id

    def requeue(self, queue: str, entry_id: str, payload: bytes | None = None, lock: Lock | None = None) -> Returned:
        def work(connection: Connection) -> Returned:
            kept = select(payload_column(connection, self._table)).where(*self._is_entry(connection, queue, entry_id))
            row = connection.execute(kept.with_for_update()).first()
            if row is None:
                return Returned.GONE
            if lock and not self._values.take_within(connection, lock):
                return Returned.HELD
            self._jobs.push(connection, queue, [bytes_of(row[0]) if payload is None else payload])
            connection.execute(delete(self._table).where(*self._is_entry(connection, queue, entry_id)))
            return Returned.DONE

        if lock:
            self._values.examine()
        return self._client.transaction(work)

    def drop_quarantined(
        self, queue: str, entry_id: str, unlocks: Sequence[Unlock] = (), state: StateRecord | None = None
    ) -> bool:
        is_followed = state is not None and self._values.keeps_states

        def work(connection: Connection) -> bool:
            gone = delete(self._table).where(*self._is_entry(connection, queue, entry_id))
            is_dropped = connection.execute(gone).rowcount
            if is_dropped and unlocks:
                self._values.release_within(connection, self._locks_of.here(unlocks))
            self._values.renew_states(connection, [state] if is_dropped and is_followed else [])
            return bool(is_dropped)

        if unlocks:
            self._values.examine()
        return self._client.transaction(work)

    def _entries(self, connection: Connection, queue: str, last: int) -> list[Any]:
        table, at = self._table.c, Clock(connection.dialect).as_seconds(self._table.c.failed_at)
        shown = (table.id, table.uuid, table.queue, table.exception, at, payload_column(connection, self._table))
        found = select(*shown).where(self._is_quarantined(connection, queue), table.id > last)
        return list(connection.execute(found.order_by(table.id).limit(_PAGE)))

    def _is_entry(self, connection: Connection, queue: str, entry_id: str) -> tuple[Any, ...]:
        is_entry = self._table.c.uuid == self._charsets.text(connection, "uuid", entry_id)
        return self._is_quarantined(connection, queue), is_entry


def payload_column(connection: Connection, table: Table) -> ColumnElement[Any]:
    """The payload; as bytes in SQLite, where a text may be invalid."""
    column = table.c.payload
    return cast(column, LargeBinary) if connection.dialect.name == "sqlite" else column


def entry_of(record: Mapping[str, Any]) -> str:
    """The payload of a waiting failure; the token makes its id unique among all failures."""
    return json.dumps({"token": secrets.token_hex(8), "record": dict(record)})


def _record(row: Any) -> FailedJob:
    number, identity, queue, connection, payload, exception, at = row
    text = bytes_of(payload).decode("utf-8", "replace")
    name, attempts = _name_and_attempts(text)
    trace = exception.rpartition(f"\n{_FAILURE}")[0] or exception
    return FailedJob(identity, name, queue, connection, attempts, text, trace, float(at), str(number))


def _name_and_attempts(payload: str) -> tuple[str, int | None]:
    """A record's name and attempts, as far as its payload has them; other programs may have written it."""
    try:
        fields = json.loads(payload)
        name = fields.get("displayName") or fields.get("job")
        attempts = fields.get("attempts")
    except (ValueError, RecursionError, AttributeError):
        return "", None
    return str(name or ""), attempts if isinstance(attempts, int) and attempts else None


def _failure(number: int, payload: str | bytes) -> PendingFailure:
    entry = json_in(bytes_of(payload))
    facts = entry if isinstance(entry, dict) else {}
    return PendingFailure(f"{number}-{facts.get('token', '')}", sound_record(facts.get("record")))


def _entry(row: Any) -> Quarantined:
    _, identity, queue, exception, at, payload = row
    return Quarantined(identity, queue, exception.removeprefix(NO_JOB), float(at), bytes_of(payload))
