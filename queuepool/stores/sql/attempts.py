"""The kept attempts in Laravel's table ``cache``: a row for each; see ``stores.attempts.Attempts``.

A key tells the queue, the moment of the end, and the job; names by digests, so that it fits and compares as it should
in any column.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select

from queuepool.payload.lease import AttemptRecord, Lease
from queuepool.stores.attempts import MOST_PAYLOAD, TRIM_TAKES, KeptAttempt
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.texts import Charsets
from queuepool.stores.sql.values import ATTEMPTS, ends

#: records that one query reads, most that one transaction removes, and whose sizes are taken for those of all
_PAGE, _STEP, _SAMPLES = 500, 1000, 100
#: how the record of a lease that was lost begins
_LOST = b"!"


class _Stored(NamedTuple):
    key: str
    value: Any


class SqlAttempts:
    """The kept attempts of one connection; ``prefix`` is that of Laravel's cache."""

    def __init__(self, client: SqlClient, prefix: str) -> None:
        self._client = client
        self._cache = client.tables.cache
        self._start = prefix + ATTEMPTS
        self._charsets = Charsets(self._cache)

    def add(self, connection: Connection, leases: Sequence[Lease], are_held: Sequence[bool]) -> None:
        """Write the records of these leases in the transaction that ends them; they are all kept as long."""
        rows, seconds, now = [], 0.0, int(time.time() * 1e6)
        for lease, is_held in zip(leases, are_held, strict=True):
            if record := lease.record:
                payload = lease.receipt.decode("utf-8", "replace") if len(lease.receipt) <= MOST_PAYLOAD else ""
                value = f"{'' if is_held else '!'}{{{record.text}{record.by}}}\n{payload}"
                name = f"{self._place(lease.queue)}{now:016}{_part_of(record.job_id)}{secrets.token_hex(8)}"
                rows.append({"name": name, "text": self._charsets.json(connection, "value", value)})
                seconds = record.seconds
        words: dict[str, Any] = {"key": bindparam("name"), "value": bindparam("text")}
        connection.execute(insert(self._cache).values(**words, **ends(connection, seconds)), rows)

    def of_job(self, queue: str, job_id: str) -> Iterator[list[KeptAttempt]]:
        return self._read(queue, self._cache.c.key.contains(_part_of(job_id), autoescape=True))

    def pages(self, queue: str) -> Iterator[list[KeptAttempt]]:
        return self._read(queue)

    def _read(self, queue: str, *these: ColumnElement[bool]) -> Iterator[list[KeptAttempt]]:
        key, these = self._cache.c.key, (*self._of(queue), *these)
        before = these
        while rows := self._client.ask(partial(self._page, these=before)):
            yield [_kept(queue, bytes_of(row.value)) for row in rows]
            before = (*these, key < rows[-1].key)

    def _page(self, connection: Connection, these: Sequence[ColumnElement[bool]]) -> list[_Stored]:
        """The latest of these rows first."""
        key = self._cache.c.key
        found = connection.execute(select(key, self._cache.c.value).where(*these).order_by(key.desc()).limit(_PAGE))
        return [_Stored(*row) for row in found]

    def note(self, queue: str, records: Sequence[AttemptRecord]) -> None:
        leases = [Lease(queue, b"", record=record) for record in records]
        self._client.transaction(lambda connection: self.add(connection, leases, [False] * len(leases)))

    def trim(self, queue: str, most: int, most_bytes: int) -> int:
        """As the contract says. What is to go is sought outside of the transactions that remove it."""
        is_ours, until, removed = self._of(queue), time.monotonic() + TRIM_TAKES, 0
        over = self._client.ask(partial(self._over, is_ours=is_ours, most=most, most_bytes=most_bytes))
        while names := self._client.ask(partial(self._first, is_ours=is_ours, over=over - removed)):
            removed += self._remove(names)
            if time.monotonic() >= until:
                break
        return removed

    def _over(self, connection: Connection, is_ours: Sequence[ColumnElement[bool]], most: int, most_bytes: int) -> int:
        """How many there are too many, by the size of the latest: to read all of them for it would take long."""
        key, length = self._cache.c.key, func.length(self._cache.c.value)
        sizes = connection.execute(select(length).where(*is_ours).order_by(key.desc()).limit(_SAMPLES)).scalars().all()
        there = int(connection.execute(select(func.count()).where(*is_ours)).scalar_one())
        return max(there - min(most, most_bytes * len(sizes) // max(sum(sizes), 1)), 0) if there else 0

    def _first(self, connection: Connection, is_ours: Sequence[ColumnElement[bool]], over: int) -> list[str]:
        """Of the first rows the ones that were kept for long enough, and the ``over`` first."""
        cache, past = self._cache.c, Clock(self._client.engine.dialect).past()
        rows = select(cache.key, cache.expiration <= past).where(*is_ours).order_by(cache.key).limit(_STEP)
        return [name for at, (name, is_past) in enumerate(connection.execute(rows)) if is_past or at < over]

    def _remove(self, names: Sequence[str]) -> int:
        rows = delete(self._cache).where(self._cache.c.key.in_(names))
        self._client.transaction(lambda connection: connection.execute(rows))
        return len(names)

    def _of(self, queue: str) -> tuple[ColumnElement[bool], ...]:
        """The rows of a queue: by a range, since not every database has an index for how a text begins.

        Behind the start stands a digit, in any order of characters before a letter.
        """
        key, start = self._cache.c.key, self._place(queue)
        return key >= start, key < f"{start}g", key.startswith(start, autoescape=True)

    def _place(self, queue: str) -> str:
        """How the keys of a queue begin; the moment of the end follows, so that they are in this order."""
        return f"{self._start}{_digest(queue)}:"


def _part_of(job_id: str) -> str:
    """A part of the keys of a job's attempts."""
    return f":{_digest(job_id)}:"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _kept(queue: str, row: bytes) -> KeptAttempt:
    text, _, payload = row.removeprefix(_LOST).partition(b"\n")
    return KeptAttempt(queue, text, payload, row.startswith(_LOST))
