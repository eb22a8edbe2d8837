"""Values in Laravel's table ``cache``: its own, the pools' notices, the history, books, and jobs' states and tallies.

Values with an owner are in ``locks``. Source: Illuminate/Cache/DatabaseStore.php (13.x).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, case, delete, func, insert, or_, select, update

from queuepool.errors import StoreDenied, StoreError
from queuepool.payload.lease import StateRecord, Tallies
from queuepool.stores.contract import NO_TRY, NOTICE_KEPT
from queuepool.stores.control import notice_by
from queuepool.stores.locks import NO_LOCKS, Finder
from queuepool.stores.sql import postgresql
from queuepool.stores.sql.books import SqlBooks
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.encoding import bytes_of
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.locks import LAST_SECOND, SqlLocks, unless_there
from queuepool.stores.sql.texts import Charsets, exactly, is_name
from queuepool.stores.values import (
    MAX_KEPT,
    MAX_NOTICE,
    MAX_OF_NOTICES,
    MAX_STATE,
    MAX_VALUE,
    MOST_KEPT,
    History,
    Kept,
)

#: seconds: Laravel's "forever", and how long it counts a job's exceptions
_FOREVER, _DAY = 315_360_000, 86_400
#: how the keys of kept attempts begin, behind Laravel's prefix
ATTEMPTS = "queuepool:attempts:"
#: names in one query: the number of parameters is limited
_NAMES_PER_QUERY = 10_000
#: most notices that are read
_MOST_NOTICES = 1000
#: most states and texts of books that one transaction removes
_PRUNED = 1000
_TALLIES = frozenset(field.name for field in fields(Tallies))


class SqlValues(SqlLocks):
    """The contract is ``stores.values.Values``. Our keys have Laravel's prefix too, so no other application sees them.

    A job's exceptions are counted where Laravel counts them, so that both sides' attempts count towards its
    ``maxExceptions``. Source: Queue/Worker.php, markJobAsFailedIfWillExceedMaxExceptions (13.x).
    """

    def __init__(self, client: SqlClient, table: JobsTable, prefix: str, lock_prefix: str) -> None:
        super().__init__(client, table, prefix, lock_prefix)
        self._cache = client.tables.cache
        self._ours = f"{prefix}queuepool:"
        self._history_start = f"{self._ours}history:"
        self._states_start = f"{self._ours}job:"
        self._attempts_start = prefix + ATTEMPTS
        self._books_start = f"{self._ours}notes:"
        self._books = SqlBooks(self._cache, self._books_start, self._is_living, self.put_within, self._add_within)
        self._charsets = Charsets(self._cache)
        self._keeps_states = False

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        def read(connection: Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for first in range(0, len(names), _NAMES_PER_QUERY):
                found |= self._some(connection, names[first : first + _NAMES_PER_QUERY])
            return found

        found = self._client.ask(read)
        return [found.get(name) for name in names]

    def _some(self, connection: Connection, names: Sequence[str]) -> dict[str, bytes]:
        named, living = self._cache.c.key.in_(names), self._is_living(connection)
        rows = connection.execute(select(self._cache.c.key, _start_of(self._cache)).where(named, living))
        return {key: bytes_of(value) for key, value in rows}

    def put(self, name: str, value: bytes) -> None:
        def work(connection: Connection) -> None:
            self.put_within(connection, name, value.decode(), _FOREVER)
            kept = connection.execute(select(self._cache.c.key).where(self._cache.c.key == name)).scalar_one()
            if kept != name:
                raise StoreError(f"the database's collation treats the key {name!r} as the existing {kept!r}")

        self._client.transaction(work)

    def remove(self, name: str) -> bool:
        def work(connection: Connection) -> bool:
            same = is_name(connection.dialect, self._cache.c.key, name)
            return connection.execute(delete(self._cache).where(same)).rowcount == 1

        return self._client.ask(work)

    def count_use(self, name: str, most: int, seconds: int) -> float | None:
        """As the contract says. Source: Illuminate/Cache/DatabaseStore.php, add and increment (13.x)."""

        def work(connection: Connection) -> float | None:
            key, timer = (self._charsets.text(connection, "key", text) for text in (name, f"{name}:timer"))
            if seconds:
                self._add_within(connection, key, "i:0;", seconds)  # a row for two that count at once to wait for
            uses, ends, now = *(_number(self._value(connection, one)) for one in (key, timer)), _now(connection)
            if uses >= most and ends:
                return float(max(ends - now, 0))
            if seconds and not ends:
                self.put_within(connection, timer, f"i:{now + seconds};", seconds)
            if seconds and 0 < uses < most:
                same = self._cache.c.key == key
                connection.execute(update(self._cache).where(same).values(value=f"i:{uses + 1};"))
            elif seconds:
                self.put_within(connection, key, "i:1;", seconds)
            return None

        return self._client.transaction(work)

    def stamp(self, name: str) -> int:
        def work(connection: Connection) -> int:
            was = _number(self._value(connection, name))
            stamp = max(_now(connection), was + 1 if was else 0)
            self.put_within(connection, name, f"i:{stamp};", _FOREVER)
            return stamp

        return self._client.transaction(work)

    def wake_stewards(self) -> None:
        """Only PostgreSQL can tell them; elsewhere they look each second."""
        if self._client.engine.dialect.name == "postgresql":
            with suppress(StoreError):
                self._client.ask(postgresql.wake_stewards)

    # Notices

    def publish(self, pool: str, notice: Mapping[str, Any]) -> None:
        def work(connection: Connection) -> None:
            text = json.dumps({**notice, "at": _now(connection)})
            self.put_within(connection, f"{self._ours}pool:{pool}", text, NOTICE_KEPT)

        self._client.transaction(work)

    def withdraw(self, pool: str) -> None:
        self.remove(f"{self._ours}pool:{pool}")

    def notices(self, within: float) -> list[dict[str, Any]]:
        def read(connection: Connection) -> list[dict[str, Any]]:
            notices = self._cache.c.key.startswith(f"{self._ours}pool:", autoescape=True)
            living = self._is_living(connection)
            connection.execute(delete(self._cache).where(notices, ~living))
            values = self._texts(connection, notices)
            now = _now(connection)
            found = filter(None, (notice_by(bytes_of(value), now) for value in values))
            return [notice for notice in found if notice["at"] >= now - within]

        return self._client.ask(read)

    def _texts(self, connection: Connection, notices: ColumnElement[bool]) -> list[Any]:
        """The notices, except those that are too large or too many; sizes come first, so that no others are sent."""
        key, value, size = self._cache.c.key, self._cache.c.value, func.length(self._cache.c.value)
        sizes = connection.execute(select(key, size).where(notices, size <= MAX_NOTICE)).all()
        sums = zip(sizes, accumulate(length for _, length in sizes), strict=True)
        names = [name for (name, _), total in sums if total <= MAX_OF_NOTICES][:_MOST_NOTICES]
        return list(connection.execute(select(value).where(key.in_(names))).scalars()) if names else []

    # The history: a row for each text

    def keep_history(self, grain: str, bucket: int, writer: str, text: str, lifetime: float) -> None:
        def work(connection: Connection) -> None:
            self.put_within(connection, f"{self._history_start}{grain}:{bucket:010}:{writer}", text, lifetime)

        self._client.transaction(work)

    def sweep_history(self) -> None:
        def work(connection: Connection) -> None:
            expired = ~self._is_living(connection)
            ours = self._cache.c.key.startswith(self._history_start, autoescape=True)
            connection.execute(delete(self._cache).where(ours, expired))

        self._client.transaction(work)

    def history(self, grain: str, buckets: range) -> History:
        key, value, size = self._cache.c.key, self._cache.c.value, func.length(self._cache.c.value)
        wanted = set(buckets)

        def read(connection: Connection) -> History:
            is_of_grain = key.startswith(f"{self._history_start}{grain}:", autoescape=True)
            living = self._is_living(connection)
            # The keys and sizes first, as another writer's text may be too large.
            rows = connection.execute(select(key, size).where(is_of_grain, living)).all()
            sound = [name for name, length in rows if length <= MAX_KEPT and self._bucket(grain, name) in wanted]
            ignored = sum(length > MAX_KEPT for _, length in rows)
            names = sound[: MOST_KEPT * len(buckets)]
            texts: list[Kept] = []
            for first in range(0, len(names), MOST_KEPT):
                part = names[first : first + MOST_KEPT]
                found = connection.execute(select(key, value).where(key.in_(part)))
                texts += [self._kept(grain, name, bytes_of(text)) for name, text in found]
            return History(texts, ignored + len(sound) - len(names))

        return self._client.ask(read)

    def _bucket(self, grain: str, name: str) -> int:
        second = name.removeprefix(f"{self._history_start}{grain}:").partition(":")[0]
        return int(second) if second.isascii() and second.isdigit() and len(second) == 10 else -1

    def _kept(self, grain: str, name: str, text: bytes) -> Kept:
        writer = name.removeprefix(f"{self._history_start}{grain}:").partition(":")[2]
        return Kept(self._bucket(grain, name), writer, text)

    # Books

    def note(self, book: str, text: str, most: int, lifetime: float) -> None:
        self._client.transaction(lambda connection: self._books.note(connection, book, text, most, lifetime))

    def notes(self, book: str, count: int) -> list[bytes]:
        return self._client.ask(lambda connection: self._books.notes(connection, book, count))

    def take_notes(self, book: str, count: int) -> list[bytes]:
        return self._client.transaction(lambda connection: self._books.take(connection, book, count))

    def drop_note(self, book: str, text: str) -> bool:
        return self._client.transaction(lambda connection: self._books.drop(connection, book, text))

    # States of tracked jobs

    def state(self, job_id: str) -> bytes | None:
        def read(connection: Connection) -> bytes | None:
            same = is_name(connection.dialect, self._cache.c.key, self._state_key(connection, job_id))
            row = select(_start_of(self._cache, MAX_STATE)).where(same, self._is_living(connection))
            found = connection.execute(row).scalar()
            return None if found is None else bytes_of(found)

        return self._client.ask(read)

    def tracked(self, job_ids: Sequence[str]) -> set[str]:
        return self._client.ask(lambda connection: self._tracked(connection, job_ids)) if job_ids else set()

    def _tracked(self, connection: Connection, job_ids: Sequence[str]) -> set[str]:
        names = {self._state_key(connection, job_id): job_id for job_id in job_ids}
        key = exactly(connection.dialect, self._cache.c.key)
        rows = select(key).where(self._cache.c.key.in_(list(names)), self._is_living(connection))
        found = (bytes_of(one).decode() for one in connection.execute(rows).scalars())
        return {names[name] for name in found if name in names}  # by its bytes, unlike some databases

    def usable(self, finder: Finder) -> Finder:
        """As ``SqlLocks.usable``; one that finds no states if there is no table of them, or it may not be read."""
        found = super().usable(finder)
        return found if not found.tracks or self.keeps_states else found._replace(tracks=(), state_of=NO_LOCKS.state_of)

    @property
    def keeps_states(self) -> bool:
        """Whether the states of jobs can be read."""
        with suppress(StoreDenied):
            self._keeps_states = self._keeps_states or not self.tracked(["-"])
        return self._keeps_states

    def has_states(self) -> bool:
        """Whether the state of any job is kept."""
        ours = self._cache.c.key.startswith(self._states_start, autoescape=True)

        def look(connection: Connection) -> bool:
            row = select(self._cache.c.key).where(ours, self._is_living(connection)).limit(1)
            return connection.execute(row).first() is not None

        return self._client.ask(look)

    def renew_states(self, connection: Connection, states: Iterable[StateRecord | None]) -> None:
        """Write, in the caller's transaction, those of these states whose jobs have one that is kept."""
        found = {state.job_id: state for state in states if state}
        for job_id in self._tracked(connection, list(found)) if found else ():
            self.write_state(connection, found[job_id])

    def prune_states(self) -> int:
        def remove(connection: Connection) -> int:
            over, key = ~self._is_living(connection), self._cache.c.key
            # of the attempts those that no steward trims any more
            starts = (self._states_start, self._books_start, self._attempts_start)
            ours = or_(*(key.startswith(start, autoescape=True) for start in starts))
            names = connection.execute(select(key).where(ours, over).limit(_PRUNED)).scalars().all()
            if names:
                connection.execute(delete(self._cache).where(key.in_(names), over))
            return len(names)

        return self._client.transaction(remove)

    def add_states(self, connection: Connection, states: Sequence[StateRecord]) -> None:
        """Write the first states of new jobs, all with the same lifetime, in the caller's transaction."""
        rows = [{"name": self._state_key(connection, state.job_id), "text": state.text.decode()} for state in states]
        if rows:
            words: dict[str, Any] = {"key": bindparam("name"), "value": bindparam("text")}
            connection.execute(insert(self._cache).values(**words, **ends(connection, states[0].seconds)), rows)

    def write_state(self, connection: Connection, state: StateRecord) -> None:
        """Write the state in the caller's transaction."""
        self.put_within(connection, self._state_key(connection, state.job_id), state.text.decode(), state.seconds)

    def _state_key(self, connection: Connection, job_id: str) -> str:
        """The key of a job's state, as the column holds it."""
        return self._charsets.text(connection, "key", self._states_start + job_id)

    # Tallies

    def count(self, connection: Connection, job_id: str, tally: str) -> int:
        """Raise this tally of the job by one, if one is named, in the caller's transaction; returns the new number."""
        if tally in ("", NO_TRY):
            return 0
        if tally == "exceptions":
            name = self._exceptions(connection, job_id)
            raised = _number(self._value(connection, name)) + 1
            self.put_within(connection, name, f"i:{raised};", _DAY)
            return raised
        name = self._tallies(connection, job_id)
        counts = _counts_in(self._value(connection, name))
        counts[tally] = counts.get(tally, 0) + 1
        self.put_within(connection, name, json.dumps(counts), _DAY)
        return counts[tally]

    def counts(self, job_id: str) -> Tallies:
        def look(connection: Connection) -> Tallies:
            # An older pool counts exceptions here too.
            ours = Tallies(**_counts_in(self._value(connection, self._tallies(connection, job_id))))
            laravels = _number(self._value(connection, self._exceptions(connection, job_id)))
            return replace(ours, exceptions=ours.exceptions + laravels)

        return self._client.ask(look)

    def forget_counts(self, connection: Connection, job_id: str) -> None:
        names = [self._tallies(connection, job_id), self._exceptions(connection, job_id)]
        connection.execute(delete(self._cache).where(self._cache.c.key.in_(names)))

    def _exceptions(self, connection: Connection, job_id: str) -> str:
        return self._charsets.text(connection, "key", f"{self._prefix}job-exceptions:{job_id}")

    def _tallies(self, connection: Connection, job_id: str) -> str:
        return self._charsets.text(connection, "key", f"{self._ours}tallies:{job_id}")

    # Rows of ``cache`` in a caller's transaction

    def put_within(self, connection: Connection, name: str, value: str, lifetime: float) -> None:
        """Set a value for ``lifetime`` seconds."""
        row = {"value": value, **ends(connection, lifetime)}
        if not connection.execute(update(self._cache).where(self._cache.c.key == name).values(**row)).rowcount:
            connection.execute(insert(self._cache).values(key=name, **row))

    def _add_within(self, connection: Connection, name: str, value: str, lifetime: float) -> None:
        """As ``put_within``, unless there is a row of this name, even an expired one."""
        row = {"key": name, "value": value, **ends(connection, lifetime)}
        connection.execute(unless_there(self._cache, connection.dialect.name, row))

    def _value(self, connection: Connection, name: str) -> str:
        same, living = self._cache.c.key == name, self._is_living(connection)
        value = connection.execute(select(_start_of(self._cache)).where(same, living).with_for_update()).scalar()
        return bytes_of(value).decode("utf-8", "replace")

    def _is_living(self, connection: Connection) -> ColumnElement[bool]:
        """Whether a value has not expired."""
        return self._cache.c.expiration > Clock(connection.dialect).past()


def _start_of(cache: Table, most: int = MAX_VALUE) -> ColumnElement[Any]:
    """The first ``most`` characters of a value: others can write too, and longer values are not ours."""
    return func.substr(cache.c.value, 1, most)


def _counts_in(value: str) -> dict[str, int]:
    """Our tallies of a job; empty if the value is damaged."""
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


def ends(connection: Connection, lifetime: float) -> dict[str, ColumnElement[Any]]:
    """The column with the end of a value that lives for ``lifetime`` seconds from now."""
    # Before Laravel 13 the column has four bytes, and "forever" does not fit from 2028 on.
    end = Clock(connection.dialect).up(lifetime)
    return {"expiration": case((end < LAST_SECOND, end), else_=LAST_SECOND)}
