"""Laravel's ``jobs`` table, for verbs that need no lease: push, count, clear, and the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from sqlalchemy import Connection, Insert, text

from queuepool.stores.contract import Sizes
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock, later
from queuepool.stores.sql.encoding import bytes_of, text_of
from queuepool.stores.sql.failed_table import Failures
from queuepool.stores.sql.outbox import PENDING
from queuepool.stores.sql.postgresql import CHANNEL
from queuepool.stores.sql.schema import Schema, schema_of
from queuepool.stores.sql.statements import Statements, push_of

#: most rows that one transaction adds, and drops
_ADDED, _DROPPED = 1000, 10_000
#: seconds for which the database's clock is assumed to run at the speed of ours
_CLOCK_LASTS = 10.0
_NOTIFY = text("SELECT pg_notify(:channel, :queue)")


class JobsTable:
    """The table of one database; ``failures`` counts quarantined payloads.

    ``clock`` is '' for the database's, or a test's Unix seconds as text.
    """

    def __init__(self, client: Client, retry_after: float, failures: Failures) -> None:
        self.client = client
        self._retry_after = retry_after
        self._failures = failures
        self._fixed = ""
        self._offset = self._offset_ends = 0.0

    @property
    def clock(self) -> str:
        return self._fixed

    @clock.setter
    def clock(self, fixed: str) -> None:
        self._fixed = self._failures.clock = fixed
        vars(self).pop("_sql", None)
        vars(self).pop("_insertion", None)

    def now(self) -> float:
        mono = time.monotonic()
        if mono >= self._offset_ends or self._fixed:
            self._offset = self._read_clock() - mono
            self._offset_ends = mono + _CLOCK_LASTS
        return mono + self._offset

    def push(self, queue: str, payloads: Sequence[bytes], delay: float = 0.0) -> None:
        assert self._schema  # refuses another kind of table, before a connection is taken for the push
        rows = [{"name": queue, "raw": text_of(raw), "later": later(delay)} for raw in payloads]
        for first in range(0, len(rows), _ADDED):
            self.client.transaction(partial(self._push, rows=rows[first : first + _ADDED]))

    def push_within(self, connection: Connection, queue: str, raw: bytes) -> None:
        """Add one job to the tail of its queue, in the caller's transaction."""
        self._push(connection, [{"name": queue, "raw": text_of(raw), "later": 0.0}])

    def sizes(self, queue: str) -> Sizes:
        def look(connection: Connection) -> Sizes:
            counts = connection.execute(self._sql.sizes, {"name": queue}).one()
            oldest = connection.execute(self._sql.oldest, {"name": queue}).first()
            aside = self._failures.count_quarantined(connection, queue)
            return Sizes(*counts, aside, bytes_of(oldest[0]) if oldest else None)

        return self.client.ask(look)

    def queues(self) -> list[str]:
        def look(connection: Connection) -> list[str]:
            names = {bytes_of(name).decode() for name in connection.execute(self._sql.queues).scalars()}
            return sorted({*names, *self._failures.queues_quarantined(connection)} - {PENDING})

        return self.client.ask(look)

    def clear(self, queue: str) -> int:
        dropped, statements = 0, self._sql
        while found := self.client.transaction(partial(self._clear, statements=statements, queue=queue)):
            dropped += found
        return dropped

    @cached_property
    def _schema(self) -> Schema:
        return self.client.ask(schema_of)

    @cached_property
    def _insertion(self) -> Insert:
        """The statement of a push, built without reading the table, which would take a second connection meanwhile.

        Producers that together hold all available connections would each wait forever for another one.
        """
        return push_of(Clock(self.client.engine.dialect, self._fixed))

    @cached_property
    def _sql(self) -> Statements:
        dialect = self.client.engine.dialect
        return Statements(dialect, Clock(dialect, self._fixed), self._retry_after, self._schema.most_attempts)

    def _push(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        connection.execute(self._insertion, rows)
        self._tell(connection, rows[0]["name"])

    def _tell(self, connection: Connection, queue: str) -> None:
        """Notify waiting workers when the transaction is committed; only PostgreSQL can."""
        if connection.dialect.name == "postgresql":
            connection.execute(_NOTIFY, {"channel": CHANNEL, "queue": queue})

    def _clear(self, connection: Connection, statements: Statements, queue: str) -> int:
        last, count = connection.execute(statements.last_of_first, {"name": queue, "most": _DROPPED}).one()
        if count:
            connection.execute(statements.clear, {"name": queue, "last": last})
        return int(count)

    def _read_clock(self) -> float:
        return float(self.client.ask(lambda connection: connection.execute(self._sql.now).scalar_one()))
