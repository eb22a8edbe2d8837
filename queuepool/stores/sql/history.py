"""The history in a database: rows of Laravel's ``cache`` that expire; the contract is ``stores.history.History``."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, select

from queuepool.stores.history import MAX_BYTES, MAX_TEXTS, Found, Kept
from queuepool.stores.sql.cache import is_living, put_within
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.encoding import bytes_of


class SqlHistory:
    """``prefix`` is Laravel's cache prefix."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = client.tables.cache
        self._ours = f"{prefix}queuepool:history:"

    def keep(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        def work(connection: Connection) -> None:
            put_within(self._table, connection, f"{self._ours}{grain}:{bucket:010}:{writer}", text, lifetime)

        self._client.transaction(work)

    def sweep(self) -> None:
        def work(connection: Connection) -> None:
            expired = ~is_living(self._table, connection)
            ours = self._table.c.key.startswith(self._ours, autoescape=True)
            connection.execute(delete(self._table).where(ours, expired))

        self._client.transaction(work)

    def kept(self, grain: str, buckets: range) -> Found:
        key, value, size = self._table.c.key, self._table.c.value, func.length(self._table.c.value)
        wanted = set(buckets)

        def read(connection: Connection) -> Found:
            is_of_grain = key.startswith(f"{self._ours}{grain}:", autoescape=True)
            living = is_living(self._table, connection)
            # The keys first, as of another writer's texts any may be too large.
            rows = connection.execute(select(key, size).where(is_of_grain, living)).all()
            sound = [name for name, length in rows if length <= MAX_BYTES and self._bucket(grain, name) in wanted]
            ignored = sum(length > MAX_BYTES for _, length in rows)
            names = sound[: MAX_TEXTS * len(buckets)]
            texts: list[Kept] = []
            for first in range(0, len(names), MAX_TEXTS):
                part = names[first : first + MAX_TEXTS]
                found = connection.execute(select(key, value).where(key.in_(part)))
                texts += [self._kept(grain, name, bytes_of(text)) for name, text in found]
            return Found(texts, ignored + len(sound) - len(names))

        return self._client.ask(read)

    def _bucket(self, grain: str, name: str) -> int:
        second = name.removeprefix(f"{self._ours}{grain}:").partition(":")[0]
        return int(second) if second.isascii() and second.isdigit() and len(second) == 10 else -1

    def _kept(self, grain: str, name: str, text: bytes) -> Kept:
        writer = name.removeprefix(f"{self._ours}{grain}:").partition(":")[2]
        return Kept(self._bucket(grain, name), writer, text)
