"""Drops what a queue holds, with the unique locks of its jobs: in transactions of some thousand rows."""

from __future__ import annotations

from functools import partial

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, not_, select

from queuepool.stores.locks import Finder
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.dropped_locks import DroppedLocks, may_hold
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.failed_table import payload_column
from queuepool.stores.sql.names import is_name

#: the most rows that one transaction drops, and those that may hold a lock: their payloads are read
_DROPPED, _READ = 10_000, 500


class Clearing:
    """That of one database's queues."""

    def __init__(self, client: Client, locks: DroppedLocks) -> None:
        self._client = client
        self._jobs = client.tables.jobs
        self._locks = locks

    def clear(self, queue: str, finder: Finder) -> int:
        """As the contract says."""
        finder, dropped = self._locks.usable(finder), 0
        while found := self._client.transaction(partial(self._step, queue=queue, finder=finder)):
            dropped += found
        return dropped

    def _step(self, connection: Connection, queue: str, finder: Finder) -> int:
        in_queue = is_name(connection.dialect, self._jobs.c.queue, queue)
        first = select(self._jobs.c.id).where(in_queue).order_by(self._jobs.c.id).limit(_DROPPED).subquery()
        last = connection.execute(select(func.max(first.c.id))).scalar()
        if last is None:
            return 0
        # Not by their ids, of which there are too many for one statement.
        these, holding = and_(in_queue, self._jobs.c.id <= last), may_hold(self._jobs, finder)
        free = connection.execute(delete(self._jobs).where(these, not_(holding))).rowcount
        return free + self._drop_holding(connection, and_(these, holding), finder)

    def _drop_holding(self, connection: Connection, these: ColumnElement[bool], finder: Finder) -> int:
        """Drop the first of these rows together with their locks."""
        if not finder.marks:
            return 0
        read = select(self._jobs.c.id, payload_column(connection, self._jobs)).where(these)
        rows = connection.execute(read.order_by(self._jobs.c.id).limit(_READ).with_for_update()).all()
        for _, payload in rows:
            self._locks.release(connection, finder.locks_of(bytes_of(payload)))
        gone = delete(self._jobs).where(self._jobs.c.id.in_(bindparam("ids", expanding=True)))
        return connection.execute(gone, {"ids": [number for number, _ in rows]}).rowcount if rows else 0
