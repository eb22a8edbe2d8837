"""Reads a queue's rows in pages, by their numbers; the contract is ``stores.contract.QueueWalk``.

A job that is pushed or retried gets a number above all others, so none that comes meanwhile is read, and none twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from queuepool.stores.contract import QueueWalk, ShelfJob
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.statements import tag_in
from queuepool.stores.sql.texts import is_name

#: more than any row's number: drivers raise for a larger one
_MOST = 2**63


class SqlWalk(QueueWalk):
    """The rows of one queue, on whatever shelf they are when they are read.

    All of them: no index leads to those of one shelf, and a statement that looked for the next of them could take long.
    """

    def __init__(self, client: SqlClient, table: JobsTable, queue: str, cursor: str = "") -> None:
        self._client = client
        self._table = table
        self._queue = queue
        self._after, self._last = _parsed(cursor) if cursor else (0, None)
        #: the numbers of the last page's rows, and the one before them
        self._numbers: list[int] = []

    def page(self, most: int) -> list[ShelfJob]:
        rows = self._client.ask(lambda connection: self._rows(connection, most))
        if rows:
            self._numbers, self._after = [self._after, *(row.id for row in rows)], rows[-1].id
        return [self._job(row) for row in rows]

    def unread(self, jobs: Sequence[ShelfJob]) -> None:
        if jobs:
            self._after = max(number for number in self._numbers if number < jobs[0].place)

    def taken(self, jobs: Sequence[ShelfJob]) -> None:
        """Nothing to do: the next page begins after a number."""

    def cursor(self) -> str:
        return json.dumps([self._after, self._last])

    def again(self) -> SqlWalk:
        cursor = "" if self._last is None else json.dumps([0, self._after])
        return SqlWalk(self._client, self._table, self._queue, cursor)

    def _rows(self, connection: Connection, most: int) -> list[Any]:
        jobs, dialect = self._client.tables.jobs, connection.dialect
        in_queue = is_name(dialect, jobs.c.queue, self._queue)
        if self._last is None:
            self._last = connection.execute(select(func.max(jobs.c.id)).where(in_queue)).scalar() or 0
        numbers = jobs.c.id > bindparam("after"), jobs.c.id <= bindparam("last")
        rows = self._table.shelved(in_queue, *numbers).order_by(jobs.c.id).limit(bindparam("most"))
        return list(connection.execute(rows, {"after": self._after, "last": self._last, "most": most}))

    def _job(self, row: Any) -> ShelfJob:
        payload = bytes_of(row.payload)
        if row.shelf == "ready":
            return ShelfJob(payload, "ready", row.id, row.attempts)
        if row.shelf == "delayed":
            return ShelfJob(payload, "delayed", row.id, row.attempts, float(row.available_at))
        ends, tag = row.reserved_at + self._table.retry_after, tag_in(row.available_at)
        return ShelfJob(payload, "reserved", row.id, row.attempts, ends, tag)


def _parsed(cursor: str) -> tuple[int, int | None]:
    """Raises ``ValueError``."""
    try:
        found = json.loads(cursor)
    except RecursionError as error:
        raise ValueError("not a cursor") from error
    match found:
        case [int() as after, int() | None as last] if 0 <= after < _MOST and 0 <= (last or 0) < _MOST:
            return after, last
    raise ValueError("not a cursor")
