"""What is at the keys of a job's places as it wants to start: locked, and seen in one round trip where that can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Compiled, Connection, Select, Text, bindparam, func, or_, select, text
from sqlalchemy.types import Float

from queuepool.payload.limits import name_of
from queuepool.stores.limits import Entering
from queuepool.stores.sql.client import SqlClient, begin
from queuepool.stores.sql.clock import Clock
from queuepool.stores.sql.jobs_table import JobsTable
from queuepool.stores.sql.postgresql import begin_with, can_pipeline
from queuepool.stores.sql.statements import marked, row_of

#: locks several keys in their order; {table}: that of limits
_ADD_KEYS = """
INSERT INTO {table} (key, turn) SELECT key, 0 FROM unnest(CAST(:at_keys AS text[])) AS one (key)
ON CONFLICT DO NOTHING RETURNING key
"""


class PlacesSeen(NamedTuple):
    """Of one job, and of each key at which it needs a place."""

    #: whether its worker still holds it
    is_leased: bool
    #: whether an earlier call has had it enter
    has_entered: bool
    #: where a place is kept for it
    granted: frozenset[str]
    #: by name or key: the number in force, seconds, the places that are not free, whether a job waits
    rows: dict[str, Any]
    now: float
    #: whether all is locked and every limit is known
    is_complete: bool

    def free(self, key: str) -> int:
        """How many jobs may start at this key; below 1, none."""
        return int(self.rows[name_of(key)].in_force - self.rows[key].taken)

    def waits(self, key: str) -> bool:
        return bool(self.rows[key].waits)

    def per(self, key: str) -> float:
        """For how long a start counts: other code may have changed it."""
        return self.rows[name_of(key)].per or 0.0


class _SeenKey(NamedTuple):
    key: str
    in_force: int | None
    per: float | None
    taken: int
    waits: bool
    now: float


class EnteringView:
    """``lock``: locks rows of keys, which it adds if they are missing."""

    def __init__(self, client: SqlClient, jobs: JobsTable, lock: Callable[[Connection, Iterable[str]], None]) -> None:
        self._client = client
        self._jobs = jobs
        self._lock = lock

    def begin(self, connection: Connection, one: Entering, start: str) -> PlacesSeen:
        """Begin a transaction, and lock the job and these keys. ``start``: the holder of starts that count."""
        keys, about = _keys_of(one), self._about(one, start)
        is_kept = all(key == name_of(key) for key in keys)  # others have rows only while they are used
        if can_pipeline(connection):
            names = ["job", *([] if is_kept else ["add_keys"]), "lock", "holders", "state"]
            job, *_, locked, holders, state = begin_with(connection, *((self._ahead[name], about) for name in names))
            return _seen(one, start, job, holders, state, len(locked))
        begin(connection)
        rows = connection.execute(self._statements["job"], about).all()
        if not (is_kept and connection.dialect.name == "sqlite"):  # in which all is locked
            self._lock(connection, keys)
        return self._seen(connection, one, start, rows)

    def again(self, connection: Connection, one: Entering, start: str) -> PlacesSeen:
        """In the same transaction, after what was missing has been added and locked."""
        self._lock(connection, _keys_of(one))
        return self._seen(connection, one, start, [marked(one.lease)])

    def _seen(self, connection: Connection, one: Entering, start: str, job: Sequence[Any]) -> PlacesSeen:
        about = self._about(one, start)
        holders, state = (connection.execute(self._statements[name], about).all() for name in ("holders", "state"))
        return _seen(one, start, job, holders, state, len(_keys_of(one)))

    def _about(self, one: Entering, start: str) -> dict[str, Any]:
        keys = _keys_of(one)
        return {
            "of_row": row_of(one.lease).id, "at_keys": keys, "names": sorted({*keys, *map(name_of, keys)}),
            "holders": [one.lease.holder, start, one.granted],
            "fixed": float(self._jobs.clock) if self._jobs.clock else None,
        }  # fmt: skip

    @cached_property
    def _ahead(self) -> dict[str, Compiled]:
        """As the driver takes them."""
        dialect, limits = self._client.engine.dialect, self._client.tables.queuepool_limits
        added = text(_ADD_KEYS.format(table=dialect.identifier_preparer.format_table(limits)))
        return {name: one.compile(dialect=dialect) for name, one in {**self._statements, "add_keys": added}.items()}

    @cached_property
    def _statements(self) -> dict[str, Any]:
        tables, dialect = self._client.tables, self._client.engine.dialect
        limits, places = tables.queuepool_limits.c, tables.queuepool_places.c
        rings, jobs, among = tables.queuepool_rings.c, tables.jobs.c, is_among(dialect.name)
        now = func.coalesce(bindparam("fixed", type_=Float), Clock(dialect).now())
        is_taken = places.key == limits.key, or_(places.granted.is_not(None), places.until > now)
        taken = select(func.count()).select_from(tables.queuepool_places).where(*is_taken).scalar_subquery()
        waits = waits_at(rings, limits.key)
        in_force = func.coalesce(limits.by_hand, limits.number)
        mine = jobs.id == bindparam("of_row"), jobs.reserved_at.is_not(None)
        return {
            "job": select(jobs.id, jobs.attempts, jobs.available_at).where(*mine).with_for_update(),
            "lock": select(limits.key).where(among(limits.key, "at_keys")).order_by(limits.key).with_for_update(),
            "holders": select(places.key, places.holder).where(among(places.holder, "holders")),
            "state": select(limits.key, in_force, limits.per, taken, waits, now).where(among(limits.key, "names")),
        }


def is_among(database: str) -> Callable[[Any, str], Any]:
    """The test whether a column is one of a parameter's texts."""
    if database == "postgresql":  # as one value: the statement can be sent ahead
        return lambda column, name: column == func.any(bindparam(name, type_=ARRAY(Text)))
    return lambda column, name: column.in_(bindparam(name, expanding=True))


def waits_at(rings: Any, key: Any) -> ColumnElement[bool]:
    """The test whether a job waits at this key.

    It asks for the first in turn, of which an index tells at once: where most lines are at one key, a database looks
    for any of them by reading the table from its beginning.
    """
    return in_turn(rings, key).scalar_subquery().is_not(None)


def in_turn(rings: Any, key: Any) -> Select[Any]:
    return select(rings.turn).where(rings.key == key).order_by(rings.turn).limit(1)


def _keys_of(one: Entering) -> list[str]:
    return sorted({place.key for place in one.asked})


def _seen(
    one: Entering, start: str, job: Sequence[Any], holders: Sequence[Any], state: Sequence[Any], locked: int
) -> PlacesSeen:
    rows = {key: _SeenKey(key, *rest) for key, *rest in state}
    keys, names = _keys_of(one), {holder for _, holder in holders}
    known = all(key in rows and name_of(key) in rows and rows[name_of(key)].in_force is not None for key in keys)
    now = next((row.now for row in rows.values()), 0.0)
    granted = frozenset(key for key, holder in holders if holder == one.granted)
    has_entered = not names.isdisjoint((one.lease.holder, start))
    is_leased = marked(one.lease) in {tuple(row) for row in job}
    return PlacesSeen(is_leased, has_entered, granted, rows, float(now), known and locked == len(keys))
