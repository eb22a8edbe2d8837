"""The failed store in Laravel's ``failed_jobs`` table, with a uuid column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, select

from queuepool.payload.ending import Lock, StateRecord
from queuepool.payload.uncounted import uncounted
from queuepool.stores.locks import NO_LOCKS, Finder
from queuepool.stores.set_aside import FailedJob, PendingFailure, RecordKey, Returned
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.dropped_locks import DroppedLocks, may_hold
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.failed_table import Failures, is_no_job, payload_column

#: precedes a failure's own id
_FAILURE = "queuepool failure "
#: adds payloads to the tail of a queue, in the same transaction
Push = Callable[[Connection, str, Sequence[bytes]], None]
#: writes the state of a tracked job, in the same transaction
WriteState = Callable[[Connection, StateRecord], None]


class SqlFailed:
    """The failed store of one database; ``push`` and ``write_state`` are for a queue in it, ``None`` for another."""

    def __init__(
        self,
        client: Client,
        failures: Failures,
        push: Push | None,
        write_state: WriteState | None = None,
        locks: DroppedLocks | None = None,
    ) -> None:
        self._client = client
        self._failures = failures
        self._push = push
        self._table = failures.table
        self._write_state = write_state
        self._locks = locks

    def count(self) -> int:
        counted = select(func.count()).select_from(self._table).where(~is_no_job(self._table))
        return int(self._client.ask(lambda c: c.execute(counted).scalar_one()))

    def page(self, first: int = 0, count: int = 1000) -> list[FailedJob]:
        """``count`` records from number ``first`` on, latest first."""

        def read(connection: Connection) -> list[FailedJob]:
            latest = self._records(connection).where(~is_no_job(self._table)).order_by(self._table.c.id.desc())
            return [_record(row) for row in connection.execute(latest.offset(first).limit(count))]

        return self._client.ask(read)

    def get(self, job_id: str) -> FailedJob | None:
        def read(connection: Connection) -> FailedJob | None:
            same = self._table.c.uuid == self._failures.charsets.text(connection, "uuid", job_id)
            row = connection.execute(self._records(connection).where(same)).first()
            return _record(row) if row else None

        return self._client.ask(read)

    def record(self, failure: PendingFailure) -> None:
        """Store its record; does nothing if this failure is already recorded.

        The failure's own id is the last line of the exception text, as Laravel's table has no other place for it.
        """
        line = f"\n{_FAILURE}{failure.id}"
        record = {**failure.record, "exception": failure.record["exception"] + line}

        def work(connection: Connection) -> None:
            names = self._failures.names(connection, record["id"], failure.id)
            is_this = self._table.c.exception.endswith(line, autoescape=True)
            same = select(self._table.c.id).where(self._table.c.uuid.in_(names), is_this)
            if not connection.execute(same.limit(1)).first():
                self._failures.add(connection, record, failure.id)

        self._client.transaction(work)

    def now(self) -> float:
        return float(self._client.ask(lambda c: c.execute(select(Clock(c.dialect).now())).scalar_one()))

    def retry(
        self, failed: FailedJob, queue: str | None = None, state: StateRecord | None = None, lock: Lock | None = None
    ) -> Returned:
        """As ``stores.set_aside.FailedStore``. Source: Illuminate/Queue/Console/RetryCommand.php (13.x)."""

        def work(connection: Connection) -> Returned:
            record = select(self._table.c.id).where(self._are([failed.key])).with_for_update()
            if not connection.execute(record).first():
                return Returned.GONE
            assert self._push
            if lock and self._locks and not self._locks.take(connection, lock):
                return Returned.HELD
            self._drop(connection, [failed.key])
            self._push(connection, queue or failed.queue, [uncounted(failed.payload.encode())])
            if state and self._write_state:
                self._write_state(connection, state)
            return Returned.DONE

        if lock and self._locks:
            self._locks.examine()
        return self._client.transaction(work)

    def drop(self, keys: Sequence[RecordKey], finder: Finder = NO_LOCKS) -> int:
        def work(connection: Connection) -> int:
            if locks:
                for payload in self._holding(connection, keys, usable):
                    locks.release(connection, usable.locks_of(payload))
            return self._drop(connection, keys)

        locks = self._locks
        usable = locks.usable(finder) if locks else NO_LOCKS
        return self._client.transaction(work) if keys else 0

    def holding(self, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        return self._client.ask(lambda c: self._holding(c, keys, finder)) if keys else []

    def older_than(self, moment: float, count: int = 1000) -> list[RecordKey]:
        """Records of jobs that failed before this Unix second, at most ``count``."""

        def read(connection: Connection) -> list[RecordKey]:
            at = Clock(connection.dialect).as_seconds(self._table.c.failed_at)
            keys = select(self._table.c.uuid, self._table.c.id).where(at < moment, ~is_no_job(self._table))
            rows = connection.execute(keys.order_by(self._table.c.id).limit(count))
            return [RecordKey(identity, str(number)) for identity, number in rows]

        return self._client.ask(read)

    def _drop(self, connection: Connection, keys: Sequence[RecordKey]) -> int:
        """Drop by row number: another record may now have the uuid of a dropped one."""
        return connection.execute(delete(self._table).where(self._are(keys))).rowcount

    def _are(self, keys: Sequence[RecordKey]) -> ColumnElement[bool]:
        return self._table.c.id.in_([int(key.mark) for key in keys])

    def _holding(self, connection: Connection, keys: Sequence[RecordKey], finder: Finder) -> list[bytes]:
        column = payload_column(connection, self._table)
        found = select(column).where(self._are(keys), may_hold(self._table, finder))
        return [bytes_of(payload) for payload in connection.execute(found).scalars()] if finder.marks else []

    def _records(self, connection: Connection) -> Select[Any]:
        table, at = self._table.c, Clock(connection.dialect).as_seconds(self._table.c.failed_at)
        shown = (
            table.id,
            table.uuid,
            table.queue,
            table.connection,
            payload_column(connection, self._table),
            table.exception,
            at,
        )
        return select(*shown)


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
