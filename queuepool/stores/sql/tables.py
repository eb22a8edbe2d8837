"""Laravel's tables, as far as we read and write them.

Source: Illuminate/Queue/Console/stubs and Illuminate/Cache/Console/stubs (8.83 to 13.x).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text

_METADATA = MetaData()

jobs = Table(
    "jobs",
    _METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("queue", Text),
    Column("payload", Text),
    Column("attempts", Integer),
    #: whole Unix seconds; null = not reserved
    Column("reserved_at", BigInteger),
    #: whole Unix seconds; for a job that our worker has reserved, the mark of its lease (``lease_tags``)
    Column("available_at", BigInteger),
    Column("created_at", BigInteger),
)

failed_jobs = Table(
    "failed_jobs",
    _METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("uuid", Text),
    Column("connection", Text),
    Column("queue", Text),
    Column("payload", Text),
    Column("exception", Text),
    #: UTC; read and written through ``Clock``
    Column("failed_at"),
)

cache = Table(
    "cache",
    _METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text),
    #: Unix seconds
    Column("expiration", BigInteger),
)

cache_locks = Table(
    "cache_locks",
    _METADATA,
    Column("key", Text, primary_key=True),
    Column("owner", Text),
    #: Unix seconds
    Column("expiration", BigInteger),
)
