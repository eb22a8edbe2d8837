"""Check the database of one connection: its version, its tables, our rights on them, its encodings, SQLite's file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Dialect, Executable, delete, false, insert, select, text, update

from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import database_of, has_password, masked, nodes_of, options_of, scheme_of
from queuepool.errors import StoreError
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.factory import Stores
from queuepool.stores.finding import Finding, Grade, refusal
from queuepool.stores.sql.client import SqlClient
from queuepool.stores.sql.encoding import UNICODE
from queuepool.stores.sql.hosts_check import inspect_hosts
from queuepool.stores.sql.postgresql import is_lent
from queuepool.stores.sql.tables import REQUIRED, TABLES, TableNames, oddity_of, own_there, problems_of, tables_of
from queuepool.stores.sql.texts import charset_of

_OLDEST = {"sqlite": (3, 35), "postgresql": (12,), "mysql": (8,), "mariadb": (10, 6)}
_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MySQL", "mariadb": "MariaDB"}
_MISSING = {"sqlite": "RETURNING", "mysql": "SKIP LOCKED", "mariadb": "SKIP LOCKED"}
_HERE = {"localhost", "127.0.0.1", "::1", ""}
#: the options that force a connection to be encrypted
_ENCRYPTING = {"sslmode=require", "sslmode=verify-ca", "sslmode=verify-full"}
_REMEDY = {"postgresql": "?sslmode=verify-full"}
_ROWS: dict[str, dict[str, Any]] = {
    "jobs": {"queue": "queuepool:check", "payload": "", "attempts": 0, "available_at": 2**31 - 1, "created_at": 0},
    "failed_jobs": {"uuid": "queuepool:check", "connection": "", "queue": "", "payload": "", "exception": ""},
    "cache": {"key": "queuepool:check", "value": "", "expiration": 0},
}
_LIMITS = {
    # -1 and 0 mean no limit
    "postgresql": (
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int, "
        "rolconnlimit, datconnlimit FROM pg_roles, pg_database "
        "WHERE rolname = current_user AND datname = current_database()"
    ),
    "mysql": "SELECT @@max_connections, @@max_user_connections",
}
_LIMITS["mariadb"] = _LIMITS["mysql"]


def inspect_database(stores: Stores, queues: Sequence[str], crews: Sequence[int]) -> Iterator[Finding]:
    """The findings; ``crews`` is how many workers each pool has. Raises ``StoreError`` when it does not answer."""
    what = f"connection {stores.settings.name}"
    yield from (Finding(grade, what, words) for grade, words in _findings(stores, queues, crews))


def _findings(stores: Stores, queues: Sequence[str], crews: Sequence[int]) -> Iterator[tuple[Grade, str]]:
    client, url = stores.client, stores.settings.url
    if unwritable := list(_unwritable(url)):
        yield from unwritable
        return
    yield from inspect_hosts(url)
    dialect = client.ask(lambda connection: connection.exec_driver_sql("SELECT 1") and connection.dialect)
    yield Grade.OK, f"{masked(url)} answers"
    yield from _transport(url)
    yield _version(dialect)
    if dialect.name == "sqlite":
        yield _journal(client)
    if client.ask(is_lent):
        yield _pooler(client)
    yield from _connections(client, crews)
    yield from _tables(client, queues)
    yield from _elsewhere(stores, queues)


def _transport(url: str) -> Iterator[tuple[Grade, str]]:
    if has_password(url) and not {host for host, _ in nodes_of(url)} <= _HERE and not _encrypts(url):
        remedy = _REMEDY.get(scheme_of(url), "?ssl_ca=FILE")
        yield Grade.WARN, f"the password and every job may cross the network unencrypted: add {remedy}"


def _encrypts(url: str) -> bool:
    options = options_of(url)
    return "ssl_ca" in options or f"sslmode={options.get('sslmode')}" in _ENCRYPTING


def _version(dialect: Dialect) -> tuple[Grade, str]:
    name = "mariadb" if getattr(dialect, "is_mariadb", False) else dialect.name
    numbers = tuple(getattr(dialect, "server_version_info", None) or ())
    version = f"{_NAMES[name]} {'.'.join(map(str, numbers[:3]))}"
    if numbers < _OLDEST[name]:
        oldest = ".".join(map(str, _OLDEST[name]))
        lacking = f" (it has no {_MISSING[name]})" if name in _MISSING else ""
        return Grade.FAIL, f"{version}: at least {oldest} is needed{lacking}"
    return Grade.OK, version


def _unwritable(url: str) -> Iterator[tuple[Grade, str]]:
    """A finding if SQLite's file or its directory, where the journal is, cannot be written."""
    path = Path(database_of(url))
    for place in (path, path.parent) if scheme_of(url) == "sqlite" and path.exists() else ():
        if not os.access(place, os.W_OK):
            yield Grade.FAIL, f"{place} cannot be written to by uid {os.geteuid()}: chown or chmod it"


def _journal(client: SqlClient) -> tuple[Grade, str]:
    mode = client.ask(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar_one())
    if mode == "wal":
        return Grade.OK, "journal_mode wal"
    remedy = f"sqlite3 {database_of(client.url)} 'PRAGMA journal_mode = WAL'"
    return Grade.WARN, f"journal_mode {mode}: readers and writers block each other; {remedy}"


def _pooler(client: SqlClient) -> tuple[Grade, str]:
    """The pooler's mode: in transaction mode, two clients in turn get the same session, unless a third interferes."""

    def session(connection: Connection) -> int:
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())

    lends = client.ask(lambda one: client.ask(session) == session(one))
    mode = "in transaction mode" if lends else "apparently in session mode: its pool_size must exceed all our processes"
    cost = "no statements are prepared, and pushes are found by polling, up to 0.05 s later"
    return Grade.WARN, f"connected through a pooler ({mode}): {cost}; connect to the server itself to avoid that"


def _tables(client: SqlClient, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    ours = client.ask(partial(own_there, tables=client.tables))
    faults = [words for table in (*REQUIRED, *ours) for words in _faults(client, table)]
    denied = [words for table in _ROWS for words in _denied(client, table)] if not faults else []
    yield from ((Grade.FAIL, words) for words in (*faults, *denied))
    if faults or denied:
        return
    names = ", ".join(client.tables.table(usual).name for usual in REQUIRED)
    yield Grade.OK, f"the tables {names} exist, and every needed right is granted"
    if oddity := client.ask(partial(oddity_of, table=client.tables.jobs)):
        yield Grade.WARN, oddity
    yield from _merged_queues(client, queues)
    yield from encodings(client)


def _connections(client: SqlClient, crews: Sequence[int]) -> Iterator[tuple[Grade, str]]:
    """Whether the connections suffice; ``crews`` is how many workers each pool has.

    Each worker and each steward always holds one.
    """
    limit, workers, stewards = client.ask(_limit), sum(crews), len(crews)
    if limit is None or 2 * workers + stewards <= limit:
        return
    processes = f"{workers} worker{'s'[: workers - 1]} and {stewards} steward{'s'[: stewards - 1]}"
    hold = f"{processes} hold {workers + stewards} connections"
    yield (
        Grade.WARN,
        f"{hold}, and up to {workers} more while their jobs push; the server allows {limit}, and refuses producers "
        "beyond that: raise max_connections, or run fewer workers",
    )


def _merged_queues(client: SqlClient, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    """Jobs that Laravel runs as if they were in one of these queues, but we do not."""
    jobs = client.tables.jobs
    named = select(jobs.c.queue).where(jobs.c.queue.in_(queues)).distinct()
    others = set(client.ask(lambda connection: connection.execute(named).scalars().all())) - {*queues}
    if others:
        names = ", ".join(map(repr, sorted(others)))
        yield (
            Grade.WARN,
            f"jobs wait in {names}, which the server's collation treats as a queue that is served: Laravel's workers "
            "run them, ours do not; spell the queue as its jobs do",
        )


def _limit(connection: Connection) -> int | None:
    """How many connections this user may have to this database; ``None`` = no limit."""
    statement = _LIMITS.get(connection.dialect.name)
    limits = connection.exec_driver_sql(statement).one() if statement else ()
    return min((limit for limit in limits if limit > 0), default=None)


def _elsewhere(stores: Stores, queues: Sequence[str]) -> Iterator[tuple[Grade, str]]:
    """The findings about stores on other servers."""
    settings = stores.settings
    queries: dict[str, Callable[[], object]] = {}
    if settings.failed_url:
        queries["the failed store"] = stores.failed.count
    if settings.control_url or settings.maintenance_url:
        queries["the control keys"] = partial(stores.control.read, queues)
    for _, locks in stores.laravel_locks:
        queries["the lock store"] = partial(locks.owners, [PREFIX])
    for what, query in queries.items():
        if words := refusal(query):
            yield Grade.FAIL, f"{what} is refused: {words}"


def _faults(client: SqlClient, table: str) -> list[str]:
    problems: list[str] = []
    missing = refusal(lambda: problems.extend(client.ask(partial(problems_of, tables=client.tables, usual=table))))
    return [missing] if missing else problems


def _denied(client: SqlClient, usual: str) -> Iterator[str]:
    """Each missing right, by name: each is really tried, and rolled back."""
    nothing: Any = false()
    table, row = client.tables.table(usual), _ROWS[usual]
    tries: dict[str, Executable] = {
        "SELECT": select(table).where(nothing),
        "INSERT": insert(table).values(**row),
        "UPDATE": update(table).where(nothing).values(**row),
        "DELETE": delete(table).where(nothing),
    }
    for right, statement in tries.items():
        if words := refusal(partial(_try, client, statement)):
            yield f"{right} on {table.name} is refused: {words}"


class _Undo(Exception):
    """Rolls a transaction back."""


def _try(client: SqlClient, statement: Executable) -> None:
    def work(connection: Connection) -> None:
        connection.execute(statement)
        raise _Undo

    try:
        client.transaction(work)
    except _Undo:
        return


# Check which characters a database can hold: others are written as escapes, or refused.

_COLUMNS = text(
    "SELECT column_name, character_set_name FROM information_schema.columns "
    "WHERE table_schema = database() AND table_name = :name AND character_set_name IS NOT NULL "
    "ORDER BY ordinal_position"
)
_COST = (
    "which lacks characters: payloads and errors keep them as escapes (\\U0001f600), a queue's name with them is "
    "refused"
)


def inspect_failed_store(connection: ConnectionSettings) -> Iterator[Finding]:
    """The same for a failed store in a database apart from the queue."""
    names = TableNames.of(connection, connection.failed_url)
    with closing(SqlClient(connection.failed_url, store="failed store", tables=tables_of(names))) as client:
        try:
            found = list(encodings(client, ["failed_jobs"]))
        except StoreError:
            return  # which is another finding
    yield from (Finding(grade, f"connection {connection.name}", words) for grade, words in found)


def encodings(client: SqlClient, tables: Sequence[str] = TABLES) -> Iterator[tuple[Grade, str]]:
    """What these tables, by their usual names, cannot hold. Raises ``StoreError``."""
    kind = client.ask(lambda connection: connection.dialect.name)
    if kind == "postgresql":
        yield from _of_database(client)
    elif kind != "sqlite":
        for usual in tables:
            yield from _of_table(client, client.tables.table(usual).name)


def _of_database(client: SqlClient) -> Iterator[tuple[Grade, str]]:
    def read(connection: Connection) -> str:
        return str(connection.exec_driver_sql("SELECT current_setting('server_encoding')").scalar_one())

    name = client.ask(read)
    if name == "SQL_ASCII":
        yield Grade.WARN, f"the database's encoding is {name}: other programs may store bytes that are not UTF-8"
    elif charset_of(name, is_postgres=True) != UNICODE:
        yield Grade.WARN, f"the database's encoding is {name}, {_COST}; UTF8 would hold all"


def _of_table(client: SqlClient, name: str) -> Iterator[tuple[Grade, str]]:
    rows = client.ask(lambda connection: connection.execute(_COLUMNS, {"name": name}).all())
    narrow: dict[str, list[str]] = {}
    for column, charset in rows:
        if charset_of(charset) != UNICODE:
            narrow.setdefault(charset, []).append(column)
    remedy = f"ALTER TABLE {name} CONVERT TO CHARACTER SET utf8mb4"
    for charset, columns in narrow.items():
        yield Grade.WARN, f"the table {name} has {', '.join(columns)} in {charset}, {_COST}; {remedy}"
