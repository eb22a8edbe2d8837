"""The states of tracked jobs in Laravel's ``cache`` table; the contract is ``stores.states.JobStates``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from queuepool.payload.ending import StateRecord
from queuepool.payload.lease import Lease
from queuepool.stores.sql.cache import ends, is_living, put_within, start_of
from queuepool.stores.sql.charsets import Charsets
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.lease_tags import row_of
from queuepool.stores.sql.leases import Leases
from queuepool.stores.sql.names import is_name
from queuepool.stores.states import MAX_STATE

#: most states that one transaction removes
_PRUNED = 1000


class SqlStates:
    """The states in one database; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: Client, leases: Leases, prefix: str) -> None:
        self._client = client
        self._cache = client.tables.cache
        self._leases = leases
        self._prefix = f"{prefix}queuepool:job:"
        self._charsets = Charsets(self._cache)

    def add(self, connection: Connection, states: Sequence[StateRecord]) -> None:
        """Write the first states of new jobs, which are kept equally long, in the caller's transaction."""
        rows = [{"name": self._key(connection, state.job_id), "text": state.text.decode()} for state in states]
        if rows:
            words: dict[str, Any] = {"key": bindparam("name"), "value": bindparam("text")}
            connection.execute(insert(self._cache).values(**words, **ends(connection, states[0].seconds)), rows)

    def write_within(self, connection: Connection, state: StateRecord) -> None:
        """Write the state in the caller's transaction."""
        put_within(self._cache, connection, self._key(connection, state.job_id), state.text.decode(), state.seconds)

    def show(self, leases: Sequence[Lease], states: Sequence[StateRecord]) -> None:
        by_row = {row_of(lease).id: state for lease, state in zip(leases, states, strict=True)}

        def write(connection: Connection, ids: list[int]) -> None:
            for row in ids:
                self.write_within(connection, by_row[row])

        self._leases.if_held(leases, write)

    def get(self, job_id: str) -> bytes | None:
        def read(connection: Connection) -> bytes | None:
            living = is_living(self._cache, connection)
            same = is_name(connection.dialect, self._cache.c.key, self._key(connection, job_id))
            found = connection.execute(select(start_of(self._cache, MAX_STATE)).where(same, living)).scalar()
            return None if found is None else bytes_of(found)

        return self._client.ask(read)

    def prune(self) -> int:
        def remove(connection: Connection) -> int:
            over = ~is_living(self._cache, connection)
            ours = self._cache.c.key.startswith(self._prefix, autoescape=True)
            names = connection.execute(select(self._cache.c.key).where(ours, over).limit(_PRUNED)).scalars().all()
            if names:
                connection.execute(delete(self._cache).where(self._cache.c.key.in_(names), over))
            return len(names)

        return self._client.transaction(remove)

    def _key(self, connection: Connection, job_id: str) -> str:
        return self._charsets.text(connection, "key", self._prefix + job_id)
