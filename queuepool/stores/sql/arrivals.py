"""Jobs that come from another store, in a database; the contract is ``stores.arrivals.Arrivals``.

What became of each is a row of Laravel's table ``cache_locks``, beside the jobs; Laravel also removes what has expired.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, select, update

from queuepool.errors import StoreDown
from queuepool.stores.arrivals import FORGOTTEN_AFTER, KNOWN_FOR, Arrival
from queuepool.stores.contract import NewJob
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import LAST_SECOND, unless_there
from queuepool.stores.sql.texts import is_name
from queuepool.stores.sql.values import SqlValues

#: how the keys begin, without the prefix of Laravel's cache: another prefix must not make a job come again
_START = "queuepool:arrived:"
#: the key of the id of this place
_PLACE = "queuepool:place"


class SqlArrivals:
    """In one database; a row's owner is what became of the job, and who wrote that."""

    def __init__(self, client: SqlClient, table: JobsTable, values: SqlValues) -> None:
        self._client = client
        self._table = table
        self._values = values
        self._rows = client.tables.cache_locks

    def place(self) -> str:
        self._values.examine()
        given = {"key": _PLACE, "owner": secrets.token_hex(16), "expiration": LAST_SECOND}
        known = self._client.transaction(partial(self._written, row=given))
        return f"{known}:{self._client.tables.jobs.fullname}"  # tables of jobs may share one of locks

    def admit(self, queue: str, job: NewJob, due: float | None, number: str, until: float) -> Arrival:
        def work(connection: Connection) -> Arrival:
            arrival, is_new = self._marked(connection, number, Arrival.CAME)
            if not is_new:
                return arrival
            now = self._table.now(connection)
            if now >= until:
                raise StoreDown("the request arrived after its sender had given up; nothing was done")
            self._table.push(connection, queue, [job.payload], max((due or 0.0) - now, 0.0))
            if state:  # of a job that was here before, there is one
                self._values.write_state(connection, state)
            return arrival

        state = job.state if job.state and self._values.keeps_states else None
        self._values.examine()
        self._table.examine()  # before the transaction
        return self._client.transaction(work)

    def refuse(self, number: str) -> Arrival:
        self._values.examine()
        marked = partial(self._marked, number=number, arrival=Arrival.REFUSED)
        return self._client.transaction(lambda connection: marked(connection)[0])

    def forget(self, numbers: Sequence[str]) -> None:
        def work(connection: Connection) -> None:
            named = self._rows.c.key.in_([f"{_START}{number}" for number in numbers])
            until = Clock(connection.dialect).up(FORGOTTEN_AFTER)
            connection.execute(update(self._rows).where(named).values(expiration=until))

        if numbers:
            self._client.transaction(work)

    def sweep(self) -> None:
        def work(connection: Connection) -> None:
            ours = self._rows.c.key.startswith(_START, autoescape=True)
            has_expired = self._rows.c.expiration < Clock(connection.dialect).down()
            connection.execute(delete(self._rows).where(ours, has_expired))

        self._values.examine()
        self._client.transaction(work)

    def _marked(self, connection: Connection, number: str, arrival: Arrival) -> tuple[Arrival, bool]:
        """Write down what becomes of the job, unless it is known; what became of it, and whether we wrote that.

        Waits for another transaction that is about to write it.
        """
        ours, until = f"{arrival.value}:{secrets.token_hex(8)}", Clock(connection.dialect).up(KNOWN_FOR)
        found = self._written(connection, {"key": f"{_START}{number}", "owner": ours, "expiration": until})
        return Arrival(found.partition(":")[0]), found == ours

    def _written(self, connection: Connection, row: Mapping[str, Any]) -> str:
        """Write this row, unless its key is there; returns the owner that is there now."""
        connection.execute(unless_there(self._rows, connection.dialect.name, dict(row)))
        is_key = is_name(connection.dialect, self._rows.c.key, row["key"])
        # The row as it is now, even where others show what was committed before the transaction began.
        found = connection.execute(select(self._rows.c.owner).where(is_key).with_for_update()).scalar()
        if found is None:  # it had expired, and was removed just now
            raise StoreDown("what is known of jobs from other stores was removed meanwhile")
        return bytes_of(found).decode("utf-8", "replace")
