"""Named values in Laravel's ``cache`` table: its own, the pools' notices, and the jobs' tallies.

The contract is ``stores.control.Cache``. Source: Illuminate/Cache/DatabaseStore.php (13.x).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, case, delete, func, insert, select, update

from queuepool.errors import StoreError
from queuepool.payload.lease import Tallies
from queuepool.stores.contract import NOTICE_KEPT
from queuepool.stores.control import MAX_VALUE
from queuepool.stores.notices import MAX_BYTES, MAX_OF_ALL, notice_in
from queuepool.stores.sql.charsets import Charsets
from queuepool.stores.sql.client import Client
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.names import is_name

#: seconds: Laravel's "forever", and how long it counts a job's exceptions
_FOREVER, _DAY = 315_360_000, 86_400
_LAST = 2**31 - 1
#: names in one question: a database takes only so many parameters
_ASKED = 10_000
#: most notices that are read
_MOST_NOTICES = 1000
_TALLIES = frozenset(field.name for field in fields(Tallies))


class SqlCache:
    """``prefix`` is Laravel's cache prefix; our own values have it too, so that no other application sees them.

    A job's exceptions are counted where Laravel counts them, so that both sides' attempts count towards its
    ``maxExceptions``. Source: Queue/Worker.php, markJobAsFailedIfWillExceedMaxExceptions (13.x).
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._table = client.tables.cache
        self._ours = f"{prefix}queuepool:"
        self._charsets = Charsets(self._table)

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        def read(connection: Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for first in range(0, len(names), _ASKED):
                found |= self._some(connection, names[first : first + _ASKED])
            return found

        found = self._client.ask(read)
        return [found.get(name) for name in names]

    def _some(self, connection: Connection, names: Sequence[str]) -> dict[str, bytes]:
        named, living = self._table.c.key.in_(names), is_living(self._table, connection)
        rows = connection.execute(select(self._table.c.key, start_of(self._table)).where(named, living))
        return {key: bytes_of(value) for key, value in rows}

    def put(self, name: str, value: bytes) -> None:
        def work(connection: Connection) -> None:
            put_within(self._table, connection, name, value.decode(), _FOREVER)
            kept = connection.execute(select(self._table.c.key).where(self._table.c.key == name)).scalar_one()
            if kept != name:
                raise StoreError(f"the database takes the key {name!r} for {kept!r}, which is there (its collation)")

        self._client.transaction(work)

    def remove(self, name: str) -> bool:
        def work(connection: Connection) -> bool:
            return (
                connection.execute(
                    delete(self._table).where(is_name(connection.dialect, self._table.c.key, name))
                ).rowcount
                == 1
            )

        return self._client.ask(work)

    def stamp(self, name: str) -> int:
        def work(connection: Connection) -> int:
            was = _number(_value(self._table, connection, name))
            stamp = max(_now(connection), was + 1 if was else 0)
            put_within(self._table, connection, name, f"i:{stamp};", _FOREVER)
            return stamp

        return self._client.transaction(work)

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        def work(connection: Connection) -> None:
            text = json.dumps({**notice, "at": _now(connection)})
            put_within(self._table, connection, f"{self._ours}pool:{pool}", text, NOTICE_KEPT)

        self._client.transaction(work)

    def withdraw(self, pool: str) -> None:
        self.remove(f"{self._ours}pool:{pool}")

    def notices(self, within: float) -> list[dict[str, Any]]:
        def read(connection: Connection) -> list[dict[str, Any]]:
            notices = self._table.c.key.startswith(f"{self._ours}pool:", autoescape=True)
            living = is_living(self._table, connection)
            connection.execute(delete(self._table).where(notices, ~living))
            values = self._texts(connection, notices)
            first = _now(connection) - within
            found = filter(None, (notice_in(bytes_of(value)) for value in values))
            return [notice for notice in found if notice["at"] >= first]

        return self._client.ask(read)

    def _texts(self, connection: Connection, notices: ColumnElement[bool]) -> list[Any]:
        """The notices that are none too large, and not too many; the sizes first, so that no other is sent."""
        key, value, size = self._table.c.key, self._table.c.value, func.length(self._table.c.value)
        sizes = connection.execute(select(key, size).where(notices, size <= MAX_BYTES)).all()
        sums = zip(sizes, accumulate(length for _, length in sizes), strict=True)
        names = [name for (name, _), total in sums if total <= MAX_OF_ALL][:_MOST_NOTICES]
        return list(connection.execute(select(value).where(key.in_(names))).scalars()) if names else []

    def count(self, connection: Connection, job_id: str, tally: str) -> int:
        """Raise this tally of the job by one, if one is named, in the caller's transaction; returns it."""
        if not tally:
            return 0
        if tally == "exceptions":
            name = self._exceptions(connection, job_id)
            raised = _number(_value(self._table, connection, name)) + 1
            put_within(self._table, connection, name, f"i:{raised};", _DAY)
            return raised
        name = self._tallies(connection, job_id)
        counts = _counts_in(_value(self._table, connection, name))
        counts[tally] = counts.get(tally, 0) + 1
        put_within(self._table, connection, name, json.dumps(counts), _DAY)
        return counts[tally]

    def counts(self, job_id: str) -> Tallies:
        def look(connection: Connection) -> Tallies:
            # An older pool counts exceptions here, too.
            ours = Tallies(**_counts_in(_value(self._table, connection, self._tallies(connection, job_id))))
            laravels = _number(_value(self._table, connection, self._exceptions(connection, job_id)))
            return replace(ours, exceptions=ours.exceptions + laravels)

        return self._client.ask(look)

    def forget_counts(self, connection: Connection, job_id: str) -> None:
        names = [self._tallies(connection, job_id), self._exceptions(connection, job_id)]
        connection.execute(delete(self._table).where(self._table.c.key.in_(names)))

    def _exceptions(self, connection: Connection, job_id: str) -> str:
        return self._charsets.text(connection, "key", f"{self._prefix}job-exceptions:{job_id}")

    def _tallies(self, connection: Connection, job_id: str) -> str:
        return self._charsets.text(connection, "key", f"{self._ours}tallies:{job_id}")


def _value(cache: Table, connection: Connection, name: str) -> str:
    living = is_living(cache, connection)
    value = connection.execute(select(start_of(cache)).where(cache.c.key == name, living).with_for_update()).scalar()
    return bytes_of(value).decode("utf-8", "replace")


def start_of(cache: Table, most: int = MAX_VALUE) -> ColumnElement[Any]:
    """As many characters of a value: others can write, too, and what is longer is none of ours."""
    return func.substr(cache.c.value, 1, most)


def _counts_in(value: str) -> dict[str, int]:
    """Our tallies of a job; none if the value is damaged."""
    try:
        found = json.loads(value or "{}").items()
    except (ValueError, RecursionError, AttributeError):
        return {}
    return {name: count for name, count in found if name in _TALLIES and isinstance(count, int)}


def _number(value: str) -> int:
    """PHP's serialized number; 0 for any other value."""
    found = re.fullmatch(r"i:(\d{1,18});", value)
    return int(found[1]) if found else 0


def _now(connection: Connection) -> int:
    return int(connection.execute(select(Clock(connection.dialect).down())).scalar_one())


def is_living(cache: Table, connection: Connection) -> ColumnElement[bool]:
    """Whether the time of a value is not over."""
    return cache.c.expiration > Clock(connection.dialect).past()


def put_within(cache: Table, connection: Connection, name: str, value: str, lifetime: float) -> None:
    """Set a value for ``lifetime`` seconds in the caller's transaction."""
    row = {"value": value, **ends(connection, lifetime)}
    if not connection.execute(update(cache).where(cache.c.key == name).values(**row)).rowcount:
        connection.execute(insert(cache).values(key=name, **row))


def ends(connection: Connection, lifetime: float) -> dict[str, ColumnElement[Any]]:
    """The column that says when a value ends which lives for ``lifetime`` seconds from now."""
    # Before Laravel 13 the column has four bytes, and "forever" does not fit from 2028 on.
    end = Clock(connection.dialect).up(lifetime)
    return {"expiration": case((end < _LAST, end), else_=_LAST)}
