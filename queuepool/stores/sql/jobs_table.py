"""Laravel's ``jobs`` table. Each verb works in its caller's transaction, so that several can share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from sqlalchemy import ColumnElement, Compiled, Connection, Insert, Select, text

from queuepool.stores.contract import NO_TRY, Shelf
from queuepool.stores.sql.client import SqlClient, begin
from queuepool.stores.sql.clock import Clock, later
from queuepool.stores.sql.encoding import bytes_of, text_of
from queuepool.stores.sql.postgresql import CHANNEL, begin_with, can_pipeline
from queuepool.stores.sql.statements import MEASURED, Statements, announced, measuring, push_of, sending
from queuepool.stores.sql.tables import Schema, schema_of
from queuepool.stores.sql.texts import Charsets

#: how many jobs other workers may take while we choose
_RIVALS = 16
_NOTIFY = text("SELECT pg_notify(:channel, :queue)")


class JobsTable:
    """The table in one database; ``retry_after``: seconds that a lease lasts."""

    def __init__(self, client: SqlClient, retry_after: float) -> None:
        self._client = client
        self.retry_after = retry_after
        self._clock = ""
        self._charsets = Charsets(client.tables.jobs)

    @property
    def clock(self) -> str:
        """'' for the database's, or a test's Unix seconds as text."""
        return self._clock

    @clock.setter
    def clock(self, fixed: str) -> None:
        if fixed != self._clock:
            self._clock = fixed
            for name in ("_statements", "_insertion", "_announced", "_first"):
                vars(self).pop(name, None)

    def examine(self) -> None:
        """Read the table's schema, unless it is known. Raises ``StoreDenied`` if it is not Laravel's.

        A shared client calls this before its transaction, which would need a second connection for it: producers that
        together hold all available connections would each wait forever for another one.
        """
        assert self._schema

    @property
    def most_attempts(self) -> int:
        """The largest number that the column holds."""
        return self._schema.most_attempts

    def now(self, connection: Connection) -> float:
        """The database's clock, Unix seconds."""
        return float(connection.execute(self._statements.now).scalar_one())

    def push(self, connection: Connection, queue: str, payloads: Iterable[bytes], delay: float = 0.0) -> None:
        """Add jobs at the tail of the queue, in their order; one job by one statement.

        The table need not have been examined.
        """
        after = later(delay)
        rows = [{"name": queue, "raw": self._text_of(connection, raw), "later": after} for raw in payloads]
        if len(rows) == 1 and connection.dialect.name == "postgresql":
            connection.execute(self._announced, rows[0])
            return
        connection.execute(self._insertion, rows)
        self.notify(connection, queue)

    def take(self, connection: Connection, queue: str, tag: int, most: int) -> list[tuple[int, Any, int]]:
        """Lease up to ``most`` rows to ``tag``: (id, payload, attempts) of each, oldest first."""
        wanted = {"name": queue, "most": most, "tag": tag}
        if connection.dialect.update_returning:
            rows = connection.execute(self._statements.take, wanted)
            return sorted((number, payload, attempts) for number, payload, attempts in rows)
        near = {"name": queue, "most": 2 * most + _RIVALS}
        ids = list(connection.execute(self._statements.near, near).scalars())
        chosen = connection.execute(self._statements.choose, {**wanted, "ids": ids}).all() if ids else []
        if chosen:
            connection.execute(self._statements.mark, {"ids": [row.id for row in chosen], "tag": tag})
        return [(row.id, row.payload, min(max(row.attempts, 0) + 1, self.most_attempts)) for row in chosen]

    def settle_and_take(
        self, connection: Connection, marks: Iterable[tuple[int, ...]], queue: str, tag: int, most: int
    ) -> tuple[set[tuple[int, ...]], list[tuple[int, Any, int]]]:
        """Begin a transaction, in one round trip with the removal of leased rows and the taking of others.

        ``marks``: (id, attempts, mark) of each row to remove; returns those that were still so, and what ``take``
        does. Only if the connection ``can_pipeline``.
        """
        wanted: dict[str, Any] = {"name": queue, "most": most, "tag": tag}
        columns = [list(column) for column in zip(*marks, strict=True)]
        if not columns:
            [rows] = begin_with(connection, (self._first["take"], wanted))
            return set(), sorted(rows)
        wanted.update(zip(("ids", "attempts", "marks"), columns, strict=True))
        [rows] = begin_with(connection, (self._first["settle_and_take"], wanted))
        taken = sorted((row, payload, attempts) for row, payload, attempts, mark in rows if mark is None)
        return {(row, attempts, mark) for row, _, attempts, mark in rows if mark is not None}, taken

    def begin_and_take(
        self, connection: Connection, first: tuple[Compiled, dict[str, Any]], queue: str, tag: int, most: int
    ) -> tuple[list[Any], list[tuple[int, Any, int]]]:
        """Begin a transaction with a statement and then what ``take`` does, in one round trip; returns what both do."""
        wanted: dict[str, Any] = {"name": queue, "most": most, "tag": tag}
        rows, taken = begin_with(connection, first, (self._first["take"], wanted))
        return rows, sorted(taken)

    def leased(self, connection: Connection, ids: Sequence[int]) -> set[tuple[int, ...]]:
        """(id, attempts, mark) of each of these rows that is leased; they are locked until the transaction ends."""
        return _tuples(connection.execute(self._statements.leased, {"ids": ids}))

    def begin_and_see(self, connection: Connection, ids: Sequence[int]) -> set[tuple[int, ...]]:
        """Begin a transaction with what ``leased`` does, in one round trip where that can be."""
        if not can_pipeline(connection):
            begin(connection)
            return self.leased(connection, ids)
        [rows] = begin_with(connection, (self._first["leased_ahead"], {"ids": list(ids)}))
        return _tuples(rows)

    def leased_to(self, connection: Connection, queues: Sequence[str], tag: int) -> list[Any]:
        """The rows leased to ``tag``: (id, queue, payload, attempts) of each, oldest first."""
        return list(connection.execute(self._statements.leased_to, {"names": list(queues), "tag": tag}))

    def renew(self, connection: Connection, ids: Sequence[int]) -> None:
        """Restart leases: they begin now."""
        connection.execute(self._statements.renew, {"ids": ids})

    def delete(self, connection: Connection, ids: Sequence[int]) -> None:
        """Remove rows."""
        connection.execute(self._statements.delete, {"ids": ids})

    def release(self, connection: Connection, ids: Sequence[int], queue: str, delay: float, tally: str = "") -> None:
        """Replace rows of ``queue`` by new ones, as in Laravel: retried jobs come after the waiting ones."""
        if tally == NO_TRY:
            self.give_back(connection, ids)
        connection.execute(self._statements.release, {"ids": ids, "later": later(delay)})
        self.delete(connection, ids)
        self.notify(connection, queue)

    def give_back(self, connection: Connection, ids: Sequence[int]) -> None:
        """End leases as if they had not been taken."""
        connection.execute(self._statements.give_back, {"ids": ids})
        self.notify(connection, "")

    def park(self, connection: Connection, ids: Sequence[int]) -> None:
        """End leases as if they had not been taken, and take the rows, with all that they hold, out of their queues."""
        connection.execute(self._statements.park, {"ids": ids})

    def unpark(self, connection: Connection, ids: Sequence[int], queue: str, delay: float) -> None:
        """Put parked rows back into their queue, before those that were pushed since."""
        connection.execute(self._statements.unpark, {"ids": ids, "name": queue, "later": later(delay)})
        self.notify(connection, queue)

    def unparking(self, row: int, queue: str) -> list[tuple[Compiled, dict[str, Any]]]:
        """What ``unpark`` does with one row, as PostgreSQL may be sent it."""
        notify = _NOTIFY.compile(dialect=self._client.engine.dialect), {"channel": CHANNEL, "queue": queue}
        return [(self._first["unpark_one"], {"row": row, "name": queue, "later": later(0.0)}), notify]

    def move(self, connection: Connection, ids: Sequence[int], queue: str, payload: str) -> None:
        """End leases, and move the rows to another queue with another payload."""
        connection.execute(self._statements.move, {"ids": ids, "name": queue, "raw": payload})

    def is_ready(self, connection: Connection, queue: str) -> bool:
        """Whether a row may be taken now."""
        return connection.execute(self._statements.is_ready, {"name": queue}).first() is not None

    def times(self, connection: Connection, queues: Sequence[str]) -> Sequence[Any]:
        """The time now, when the first free row is due, and when the first and the last lease began."""
        return connection.execute(self._statements.times, {"names": queues}).one()

    def end_in_time(self, connection: Connection, queues: Sequence[str]) -> None:
        """Restart leases that begin in the future: a clock was wrong."""
        connection.execute(self._statements.end_in_time, {"names": queues})

    def count(self, connection: Connection, queue: str) -> Sequence[int]:
        """How many rows are ready, delayed and leased."""
        return connection.execute(self._statements.count, {"name": queue}).one()

    def measure(self, connection: Connection, queue: str) -> tuple[int, int, int, bool, float, float]:
        """How many are ready, delayed and leased; whether there are more; the age of the next ready one; the time."""
        counts, undelayed, next_ready = measuring(self._client.tables.jobs, connection.dialect)
        ready, delayed, leased, rows, now = connection.execute(counts, {"name": queue}).one()
        is_more = rows > MEASURED
        if is_more:  # those that were counted may all be delayed, and workers are needed for what is ready behind them
            ready, _, leased, *_ = connection.execute(undelayed, {"name": queue}).one()
        since = connection.execute(next_ready, {"name": queue}).scalar_one_or_none() if ready else None
        age = 0.0 if since is None else max(float(now) - since, 0.0)
        return ready, delayed, leased, is_more, age, float(now)

    def first(self, connection: Connection, queue: str, most: int, state: Shelf = "ready") -> list[bytes]:
        """The payloads of the first rows in this state."""
        rows = connection.execute(self._statements.first[state], {"name": queue, "most": most})
        return [bytes_of(payload) for payload in rows.scalars()]

    def shelved(self, *which: ColumnElement[bool]) -> Select[Any]:
        """These rows: ``id``, ``payload``, ``attempts``, ``reserved_at``, ``available_at`` and their ``shelf``."""
        return self._statements.shelved.where(*which)

    def lock_free(self, connection: Connection, queue: str, payloads: Mapping[int, bytes]) -> set[int]:
        """Which of these rows are in the queue and not leased; they are locked until the transaction ends.

        They must have these payloads, too: SQLite gives the number of its last row to the next one.
        """
        rows = connection.execute(self._statements.lock_free, {"name": queue, "ids": list(payloads)})
        return {row.id for row in rows if bytes_of(row.payload) == payloads[row.id]}

    def send(self, connection: Connection, ids: Sequence[int], queue: str) -> None:
        """Replace rows that are not leased by new ones of another queue, which come after the rows there.

        With their numbers they would come among those, and be met by a walk through that queue. They keep what
        others have written into columns of their own.
        """
        connection.execute(self._sending, {"ids": ids, "name": queue})
        self.delete(connection, ids)
        self.notify(connection, queue)

    def hasten(self, connection: Connection, ids: Sequence[int], queue: str) -> None:
        """Make rows of this queue that are not leased due now."""
        connection.execute(self._statements.hasten, {"ids": ids})
        self.notify(connection, queue)

    def rewrite(self, connection: Connection, payloads: Mapping[int, bytes]) -> None:
        """Replace the payloads of these rows."""
        rows = [{"row": number, "raw": self._text_of(connection, raw)} for number, raw in payloads.items()]
        if rows:
            connection.execute(self._statements.rewrite, rows)

    def waiting_row(self, connection: Connection, row: int) -> Any | None:
        """(payload, attempts) of this row if it is free; it is locked until the transaction ends."""
        return connection.execute(self._statements.waiting_row, {"ids": [row]}).first()

    def queues(self, connection: Connection) -> set[str]:
        """The queues that have rows."""
        return {bytes_of(name).decode() for name in connection.execute(self._statements.queues).scalars()}

    def notify(self, connection: Connection, queue: str) -> None:
        """Notify waiting workers when the transaction is committed; only PostgreSQL can."""
        if connection.dialect.name == "postgresql":
            connection.execute(_NOTIFY, {"channel": CHANNEL, "queue": queue})

    @cached_property
    def _schema(self) -> Schema:
        return self._client.ask(partial(schema_of, table=self._client.tables.jobs))

    @cached_property
    def _insertion(self) -> Insert:
        return push_of(self._client.tables.jobs, Clock(self._client.engine.dialect, self._clock))

    @cached_property
    def _announced(self) -> Select[Any]:
        return announced(self._insertion, CHANNEL)

    @cached_property
    def _first(self) -> dict[str, Compiled]:
        """The statements that may begin a transaction, as the driver takes them."""
        dialect = self._client.engine.dialect
        names = "take", "settle_and_take", "leased_ahead", "unpark_one"
        return {name: getattr(self._statements, name).compile(dialect=dialect) for name in names}

    @cached_property
    def _sending(self) -> Insert:
        return sending(self._client.tables.jobs, self._schema.others)

    @cached_property
    def _statements(self) -> Statements:
        dialect = self._client.engine.dialect
        clock = Clock(dialect, self._clock)
        return Statements(self._client.tables.jobs, dialect, clock, self.retry_after, self.most_attempts)

    def _text_of(self, connection: Connection, raw: bytes) -> str | bytes:
        text = text_of(raw)
        if isinstance(text, bytes) or text.isascii():
            return text
        return self._charsets.json(connection, "payload", text)


def _tuples(rows: Iterable[Any]) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows}
