"""The keys of alerts in Laravel's table ``cache_locks``; the contract is ``stores.alerts.AlertKeys``.

A digest ends each key: the collations of MySQL take ``Emails`` and ``emails`` for the same, and a column has a length.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import ColumnElement, Connection, and_, delete, select

from queuepool.payload.ending import Lock
from queuepool.stores.alerts import Claim
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.locks import SqlLocks
from queuepool.stores.sql.names import is_name

#: most characters of an alert in its key, which the digest follows
_MAX_NAME = 120


class SqlAlerts:
    """The keys in one database; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: Client, locks: SqlLocks, prefix: str) -> None:
        self._client = client
        self._locks = locks
        self._table = client.tables.cache_locks
        self._prefix = prefix

    def claim(self, alert: str, owner: str, seconds: float) -> Claim:
        lock = Lock(_name_of(alert), owner, seconds)

        def work(connection: Connection) -> Claim:
            holder = self._holder(connection, lock.name)
            if holder is None:
                return Claim.TAKEN if self._locks.take_within(connection, lock) else Claim.OTHERS
            return Claim.OURS if holder == owner else Claim.OTHERS

        self._locks.examine()
        return self._client.transaction(work)

    def release(self, alert: str, owner: str) -> bool:
        def work(connection: Connection) -> bool:
            held = self._is_held(connection, _name_of(alert))
            return connection.execute(delete(self._table).where(held, self._table.c.owner == owner)).rowcount == 1

        self._locks.examine()
        return self._client.ask(work)

    def _holder(self, connection: Connection, name: str) -> str | None:
        """The owner of the key; ``None`` if it is free, or its time is over."""
        row = select(self._table.c.owner).where(self._is_held(connection, name)).with_for_update()
        owner = connection.execute(row).scalar()
        return None if owner is None else bytes_of(owner).decode("utf-8", "replace")

    def _is_held(self, connection: Connection, name: str) -> ColumnElement[bool]:
        is_key = is_name(connection.dialect, self._table.c.key, self._prefix + name)
        return and_(is_key, self._table.c.expiration > Clock(connection.dialect).down())


def _name_of(alert: str) -> str:
    return f"queuepool:alert:{alert[:_MAX_NAME]}#{hashlib.sha256(alert.encode()).hexdigest()[:16]}"
