"""Laravel's tables, as far as we use them, under their configured names, and what we must know of existing ones.

Beside them is our own ``queuepool_steps``.

Source: Illuminate/Queue/Console/stubs and Illuminate/Cache/Console/stubs (8.83 to 13.x).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache as remembered
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, Double, Integer, LargeBinary, MetaData, Table, Text, inspect

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import scheme_of
from queuepool.errors import StoreDenied

#: characters of a table's name, of which PostgreSQL cuts what is longer
_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names; ``schema`` is PostgreSQL's, empty = the first of the ``search_path``."""

    jobs: str = "jobs"
    failed_jobs: str = "failed_jobs"
    cache: str = "cache"
    cache_locks: str = "cache_locks"
    job_batches: str = "job_batches"
    schema: str = ""

    @classmethod
    def of(cls, settings: ConnectionSettings, url: str) -> TableNames:
        """The names of a connection's tables, in this one of its databases."""
        own = settings.jobs_table, settings.failed_table, settings.cache_table, settings.lock_table
        schema = settings.schema if scheme_of(url) == "postgresql" else ""
        return cls(*own, settings.batches_table, schema)

    def own(self, what: str) -> str:
        """The name of a table of ours, which belongs to this table of jobs."""
        if self.jobs == "jobs":
            return f"queuepool_{what}"
        name = f"queuepool_{what}_{self.jobs}"
        return name if len(name) <= _LONGEST_NAME else name[:48] + hashlib.sha256(name.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one database. Get them by ``tables_of``."""

    names: TableNames
    jobs: Table = field(repr=False)
    failed_jobs: Table = field(repr=False)
    cache: Table = field(repr=False)
    cache_locks: Table = field(repr=False)
    #: read only: Laravel counts the jobs
    job_batches: Table = field(repr=False)
    # Ours: what is kept of the steps of jobs, and flows
    queuepool_steps: Table = field(repr=False)
    queuepool_flows: Table = field(repr=False)
    queuepool_members: Table = field(repr=False)
    queuepool_edges: Table = field(repr=False)
    queuepool_joins: Table = field(repr=False)
    # and limits: their numbers, who takes turns, who has places, and who waits
    queuepool_limits: Table = field(repr=False)
    queuepool_rings: Table = field(repr=False)
    queuepool_places: Table = field(repr=False)
    queuepool_parked: Table = field(repr=False)

    def table(self, usual: str) -> Table:
        """One of them, by its usual name."""
        found: Table = getattr(self, usual)
        return found


@remembered
def tables_of(names: TableNames) -> Tables:
    """The tables with these names; always the same objects, for which SQLAlchemy caches what it renders."""
    return Tables(
        names,
        _table(names.jobs, names.schema, _jobs_columns()),
        _table(names.failed_jobs, names.schema, _failed_columns()),
        _table(names.cache, names.schema, _cache_columns("value")),
        _table(names.cache_locks, names.schema, _cache_columns("owner")),
        _table(names.job_batches, names.schema, _batch_columns()),
        _table(names.own("steps"), names.schema, _step_columns()),
        _table(names.own("flows"), names.schema, _flow_columns()),
        _table(names.own("members"), names.schema, _member_columns()),
        _table(names.own("edges"), names.schema, [Column(name, Text, primary_key=True) for name in _EDGE]),
        _table(names.own("joins"), names.schema, _join_columns()),
        _table(names.own("limits"), names.schema, _limit_columns()),
        _table(names.own("rings"), names.schema, _ring_columns()),
        _table(names.own("places"), names.schema, _place_columns()),
        _table(names.own("parked"), names.schema, _parked_columns()),
    )


def _jobs_columns() -> list[Column[Any]]:
    return [
        Column("id", BigInteger, primary_key=True),
        Column("queue", Text),
        Column("payload", Text),
        Column("attempts", Integer),
        #: whole Unix seconds; null = not reserved
        Column("reserved_at", BigInteger),
        #: whole Unix seconds; for a job that our worker has reserved, the mark of its lease (``statements.mark_of``)
        Column("available_at", BigInteger),
        Column("created_at", BigInteger),
    ]


def _failed_columns() -> list[Column[Any]]:
    texts = [Column(name, Text) for name in ("uuid", "connection", "queue", "payload", "exception")]
    #: ``failed_at`` is in UTC; read and written through ``Clock``
    return [Column("id", BigInteger, primary_key=True), *texts, Column("failed_at")]


def _cache_columns(what: str) -> list[Column[Any]]:
    #: ``expiration`` is in Unix seconds
    return [Column("key", Text, primary_key=True), Column(what, Text), Column("expiration", BigInteger)]


def _batch_columns() -> list[Column[Any]]:
    numbers = [Column(name, Integer) for name in ("total_jobs", "pending_jobs", "failed_jobs", "cancelled_at")]
    return [Column("id", Text, primary_key=True), Column("name", Text), *numbers]


def _step_columns() -> list[Column[Any]]:
    keys: list[Column[Any]] = [Column("job", Text, primary_key=True), Column("name", LargeBinary, primary_key=True)]
    #: ``written`` is in Unix seconds
    return [*keys, Column("value", Text), Column("written", BigInteger)]


_EDGE = ("flow", "pred", "succ")
_COUNTS = ("open", "bad", "spent", "held", "striped")


def _flow_columns() -> list[Column[Any]]:
    """Times in Unix seconds; ``look``: when a steward must look."""
    numbers = [Column(name, Integer) for name in ("total", "roots", "stops")]
    times = [Column(name, Double) for name in ("keep", "created", "deadline", "look", "ended")]
    texts = [Column(name, Text) for name in ("name", "names", "state", "alarm_queue", "alarm")]
    return [Column("id", Text, primary_key=True), *texts, *numbers, *times]


def _member_columns() -> list[Column[Any]]:
    """``open``: how many of those that it follows are not over, ``bad`` how many have failed or were cancelled.

    ``spent``: those that follow it by the rules f and a have been told of its end; ``held``: it was ready while its
    flow was stopped. ``payload`` is null once it was pushed, ``name`` unless a running job has added it.
    """
    keys = [Column(name, Text, primary_key=True) for name in ("flow", "n")]
    texts = [Column(name, Text) for name in ("state", "rule", "queue", "payload", "result", "name")]
    return [*keys, *texts, Column("delay", Double), *(Column(one, Integer) for one in _COUNTS)]


def _join_columns() -> list[Column[Any]]:
    """The stripes of a member that follows many: as ``open`` and ``bad`` of the member, which then counts stripes."""
    keys = [Column("flow", Text, primary_key=True), Column("n", Text, primary_key=True)]
    return [*keys, Column("stripe", Integer, primary_key=True), Column("open", Integer), Column("bad", Integer)]


def _limit_columns() -> list[Column[Any]]:
    """Of a limit's name: its ``number``, its seconds ``per`` number, what was set ``by_hand``; of each of its keys: the
    last ``turn`` that was given, and when (Unix seconds) a steward must ``look``, null = no job waits.
    """
    numbers = [Column(name, Integer) for name in ("number", "by_hand")]
    times = [Column(name, Double) for name in ("per", "look")]
    return [Column("key", Text, primary_key=True), *numbers, *times, Column("turn", BigInteger)]


def _ring_columns() -> list[Column[Any]]:
    """The partitions of queues that wait at a key, and when it is their turn."""
    return [*(Column(name, Text, primary_key=True) for name in ("key", "queue", "part")), Column("turn", BigInteger)]


def _place_columns() -> list[Column[Any]]:
    """A place ends ``until`` then, in Unix seconds; ``granted``: the row of the job for which it is kept."""
    keys = [Column(name, Text, primary_key=True) for name in ("key", "holder")]
    return [*keys, Column("until", Double), Column("queue", Text), Column("granted", BigInteger)]


def _parked_columns() -> list[Column[Any]]:
    """Jobs that wait at a key, by their numbers in ``jobs``; ``asked``: key and part of each limit."""
    texts = [Column(name, Text) for name in ("key", "part", "queue", "asked", "job")]
    return [Column("id", BigInteger, primary_key=True), *texts]


def _table(name: str, schema: str, columns: list[Column[Any]]) -> Table:
    return Table(name, MetaData(), *columns, schema=schema or None)


#: by Laravel's own names
USUAL = tables_of(TableNames())


# The schema of the existing tables: Laravel's have changed over the years.

#: most attempts that the tables of the newest Laravel, and ours, hold
MOST_ATTEMPTS = 65535
#: the largest numbers by column type: signed, unsigned
_LARGEST = {"TINYINT": (127, 255), "SMALLINT": (32767, MOST_ATTEMPTS)}
#: those that we create, by their usual names
TABLES = (
    "jobs",
    "failed_jobs",
    "cache",
    "cache_locks",
    "queuepool_steps",
    "queuepool_flows",
    "queuepool_members",
    "queuepool_edges",
    "queuepool_joins",
    "queuepool_limits",
    "queuepool_rings",
    "queuepool_places",
    "queuepool_parked",
)
#: without these nothing works; the others are for some kinds of jobs
REQUIRED = TABLES[:3]
#: our own
OWN = tuple(one for one in TABLES if one.startswith("queuepool_"))
#: the settings that give them other names
_KEYS = {"jobs": "jobs_table", "failed_jobs": "failed_table", "cache": "cache_table", "cache_locks": "lock_table"}
_OTHER_NAME = "if another program created it, name ours by [connection] {} (docs/producers.md#names-of-tables)"
_NOT_OURS = "another version has made it: drop it if nothing of it is needed, and run `queuepool migrate`"
_NO_UUID = "as before Laravel 8: add it, varchar(255), unique, and fill it in every row"


@dataclass(frozen=True, slots=True)
class Schema:
    """What we must know about ``jobs``: ``most_attempts`` is the largest number that its column holds.

    ``others``: the columns that an application has added, without those that the database computes.
    """

    most_attempts: int
    others: tuple[str, ...] = ()


def schema_of(connection: Connection, table: Table) -> Schema:
    """The schema of the ``jobs`` table. Raises ``StoreDenied`` when it cannot be used."""
    columns = _columns(connection, table)
    for problem in _problems("jobs", table, columns):
        raise StoreDenied(problem)
    others = tuple(one for one in columns if one not in table.columns and not _is_computed(columns[one]))
    return Schema(_largest(columns["attempts"]["type"]), others)


def problems_of(connection: Connection, tables: Tables, usual: str) -> list[str]:
    """Why the table with this usual name cannot be used."""
    table = tables.table(usual)
    return list(_problems(usual, table, _columns(connection, table)))


def oddity_of(connection: Connection, table: Table) -> str:
    """A warning about a ``jobs`` table without problems; empty if there is none."""
    most = schema_of(connection, table).most_attempts
    if most > 255:
        return ""
    return f"the column attempts of {table.name} is tinyint, as before Laravel 13: a job fails at its {most}th attempt"


def missing(connection: Connection, tables: Tables) -> str:
    """The first required table that is missing; empty if none is."""
    names = [tables.table(usual) for usual in REQUIRED]
    there = inspect(connection).has_table
    return next((table.name for table in names if not there(table.name, schema=table.schema)), "")


def own_there(connection: Connection, tables: Tables) -> list[str]:
    """Those of our own tables that exist, by usual names: a database from before one of them has it not."""
    there, found = inspect(connection).has_table, ((usual, tables.table(usual)) for usual in OWN)
    return [usual for usual, table in found if there(table.name, schema=table.schema)]


def _columns(connection: Connection, table: Table) -> dict[str, Any]:
    """What is known of the columns, by name. Raises SQLAlchemy's ``NoSuchTableError``, which the client translates."""
    return {one["name"]: one for one in inspect(connection).get_columns(table.name, schema=table.schema)}


def _is_computed(column: Mapping[str, Any]) -> bool:
    """Whether the database gives the column its values, and takes none."""
    return bool(column.get("computed") or column.get("identity"))


def _problems(usual: str, table: Table, columns: Mapping[str, Any]) -> Iterator[str]:
    missing, name = sorted(table.columns.keys() - columns.keys()), table.name
    if usual == "jobs" and "reserved" in columns:
        yield f"the table {name} has a column `reserved`, as in Laravel 5.2: migrate it to Laravel 5.3 or later"
    elif usual == "failed_jobs" and missing == ["uuid"]:
        yield f"the table {name} has no column uuid, {_NO_UUID}"
    elif missing:
        why = _NOT_OURS if usual in OWN else f"it is not Laravel's; {_OTHER_NAME.format(_KEYS[usual])}"
        yield f"the table {name} has no column {missing[0]}: {why}"


def _largest(kind: Any) -> int:
    signed, unsigned = _LARGEST.get(type(kind).__name__, (MOST_ATTEMPTS, MOST_ATTEMPTS))
    return unsigned if getattr(kind, "unsigned", False) else signed
