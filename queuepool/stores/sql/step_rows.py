"""The rows of our own table of kept steps, in a caller's transaction.

Names are bytes: in a column of text they would have to be what its encoding holds, and some databases would take one
for another that differs only in its case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from sqlalchemy import Connection, delete, insert, update

from queuepool.payload.kept_step import StepsEnd
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock

#: characters of a job's id that the column holds
_MOST_ID = 128


class StepRows:
    """Writes them for one connection."""

    def __init__(self, client: SqlClient) -> None:
        self._rows = client.tables.queuepool_steps

    def keep(self, connection: Connection, job_id: str, values: Mapping[str, bytes]) -> None:
        """Write these values. Only the holder of the job's lease, which this transaction has proved, does so."""
        job, written = self._rows.c.job == key_of(job_id), Clock(connection.dialect).down()
        for name, value in values.items():
            row = {"value": value.decode(), "written": written}
            same = update(self._rows).where(job, self._rows.c.name == name.encode())
            if not connection.execute(same.values(**row)).rowcount:
                connection.execute(insert(self._rows).values(job=key_of(job_id), name=name.encode(), **row))

    def end(self, connection: Connection, end: StepsEnd) -> None:
        """Do with them what the end of the job's lease asks for."""
        all_of_job = self._rows.c.job == key_of(end.job_id)
        if end.forget:
            connection.execute(delete(self._rows).where(all_of_job))
            return
        self.keep(connection, end.job_id, dict(end.places))
        # For ``prune``, which looks at the newest.
        written = Clock(connection.dialect).down(end.delay)
        connection.execute(update(self._rows).where(all_of_job).values(written=written))


def key_of(job_id: str) -> str:
    """The id as the column holds it: a long one, or one of other characters, by its digest."""
    is_plain = len(job_id) <= _MOST_ID and job_id.isascii() and job_id.isprintable()
    return job_id if is_plain else hashlib.sha256(job_id.encode("utf-8", "replace")).hexdigest()
