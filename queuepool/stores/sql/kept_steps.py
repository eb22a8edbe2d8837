"""The kept steps in our own table: a row for each; see ``stores.kept_steps.KeptSteps``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection, delete, exists, select

from queuepool.errors import StoreError
from queuepool.payload.lease import Lease
from queuepool.stores.kept_steps import STEPS_LAST
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.leases import Leases
from queuepool.stores.sql.step_rows import StepRows, key_of

#: jobs whose steps one transaction removes, and seconds until a process looks for old ones again
_PRUNED, _PRUNE_AGAIN = 100, 3600.0


class SqlKeptSteps:
    """The kept steps of one connection."""

    def __init__(self, client: SqlClient, leases: Leases) -> None:
        self._client = client
        self._leases = leases
        self._rows = client.tables.queuepool_steps
        self._in_transactions = StepRows(client)
        #: when old ones are looked for (monotonic)
        self._prune_at = 0.0

    def of_job(self, job_id: str) -> dict[str, bytes]:
        steps = select(self._rows.c.name, self._rows.c.value).where(self._rows.c.job == key_of(job_id))
        found = self._client.ask(lambda connection: connection.execute(steps).all())
        return {bytes_of(name).decode("utf-8", "replace"): bytes_of(value) for name, value in found}

    def keep(self, lease: Lease, job_id: str, values: Mapping[str, bytes]) -> bool:
        write = partial(self._in_transactions.keep, job_id=job_id, values=values)
        is_kept = self._leases.if_held([lease], lambda connection, _: write(connection))[0]
        if time.monotonic() >= self._prune_at:  # here, so that pools without steps never ask
            self._prune_at = time.monotonic() + _PRUNE_AGAIN
            with suppress(StoreError):
                self.prune()
        return is_kept

    def forget(self, job_id: str, name: str) -> bool:
        row = delete(self._rows).where(self._rows.c.job == key_of(job_id), self._rows.c.name == name.encode())
        return self._client.transaction(lambda connection: connection.execute(row).rowcount == 1)

    def prune(self) -> int:
        """Remove those of some jobs of which none was written for long enough; returns how many."""

        def remove(connection: Connection) -> int:
            rows, over = self._rows, Clock(connection.dialect).past(STEPS_LAST)
            newer = rows.alias()
            is_newer = (newer.c.job == rows.c.job) & (newer.c.written >= over)
            old = select(rows.c.job).where(rows.c.written < over, ~exists().where(is_newer)).distinct().limit(_PRUNED)
            # MySQL reads the table that it changes only in a subquery of a subquery.
            return connection.execute(delete(rows).where(rows.c.job.in_(select(old.subquery().c.job)))).rowcount

        return self._client.transaction(remove)
