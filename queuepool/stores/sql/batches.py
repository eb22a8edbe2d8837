"""Reads Laravel's table ``job_batches``. Source: Bus/DatabaseBatchRepository.php (8.83 to 13.x)."""

from __future__ import annotations

from sqlalchemy import Connection, select

from queuepool.stores.batches import Batch
from queuepool.stores.sql.client import SqlClient


class SqlBatches:
    """The batches in one database."""

    def __init__(self, client: SqlClient) -> None:
        self._client = client

    def find(self, batch_id: str) -> Batch | None:
        """As ``stores.batches.Batches``."""

        def look(connection: Connection) -> Batch | None:
            batches = self._client.tables.job_batches
            row = connection.execute(select(batches).where(batches.c.id == batch_id)).one_or_none()
            if row is None:
                return None
            cancelled = row.cancelled_at is not None
            return Batch(row.id, row.name, row.total_jobs, row.pending_jobs, row.failed_jobs, cancelled)

        return self._client.interruptible(look)  # a handler may ask, and get SoftTimeout meanwhile
