"""Temporary stores: SQLite files of this process, in memory where the system allows; and ``make_tables``.

Time there is skipped, not waited for: a store's clock is set forward in this process. ``next_times`` lists the due
times of a schedule.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from tempfile import mkdtemp
from typing import Any

from sqlalchemy import Engine, event

from queuepool.config.connections import check_drivers
from queuepool.config.settings import ConnectionSettings
from queuepool.config.timetable import due_after, rule_of, timetable_of, zone
from queuepool.errors import StoreDenied
from queuepool.jobs.connecting import settings_at
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.job_class import Job
from queuepool.stores.contract import QueueStore
from queuepool.stores.factory import Stores
from queuepool.stores.sql.ddl import statements_of

#: where files are in memory, on Linux: a commit then waits for no disk
_IN_MEMORY = "/dev/shm"
#: seconds: no job of a test is taken for one whose worker died, however long a debugger holds it
_LEASE = 86400.0
#: what SQLite's ``julianday`` is at the beginning of Unix time, in days
_UNIX, _DAY = 2440587.5, 86400.0


def temporary_stores(settings: ConnectionSettings) -> Stores:
    """The stores that stand in for those of this connection: the same for each that differs only in its places.

    Keys, signing and what Laravel learns stay as they are.
    """
    return _stores(
        ConnectionSettings(
            name=settings.name, signing=settings.signing, signing_keys=settings.signing_keys, app_key=settings.app_key,
            previous_keys=settings.previous_keys, cipher=settings.cipher, outcomes=settings.outcomes,
            outcome_class=settings.outcome_class, flow_reports=settings.flow_reports, php_failed=settings.php_failed,
            foreign=settings.foreign, retry_after=_LEASE,
        ),
        os.getpid(),
    )  # fmt: skip


def empty(stores: Stores) -> None:
    """Empty temporary stores: making new ones would take longer."""
    deletes = "".join(f'DELETE FROM "{table}";' for table in statements_of("sqlite"))
    stores.client.ask(lambda connection: connection.connection.executescript(f"BEGIN; {deletes} COMMIT"))


def make_tables(where: str | Path | None = None, *, connection: str | None = None) -> list[str]:
    """Create the queue's tables that are missing, as ``queuepool migrate`` does, and return their names.

    ``where`` and ``connection`` as for ``connect``. Redis has no tables: nothing is created. An existing table stays as
    it is. Raises ``ConfigError``, ``StoreDenied`` for a table that cannot be used, and ``StoreError``.
    """
    from queuepool.stores.sql.migrate import client_at, migrate, places_of, problems

    settings = settings_at(where, connection)
    check_drivers(settings)
    made = []
    for (url, names), tables in places_of([settings]).items():
        with closing(client_at(url, names)) as client:
            made += migrate(client, tables)
            for problem in problems(client, tables):
                raise StoreDenied(problem)
    return made


@cache
def _stores(settings: ConnectionSettings, process: int) -> Stores:
    """The stores of this process: if a test has forked it, their files lie beside its parent's."""
    path = _folder() / f"{process}-{_stores.cache_info().currsize}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statements in statements_of("sqlite").values():
            connection.executescript(";".join(statements))
    stores = Stores(replace(settings, url=f"sqlite:///{path}"), shared=True)
    TIME.take_over(stores.client.engine, stores.queue)
    return stores


@cache
def _folder() -> Path:
    """The folder of these files, removed when the process that made it ends."""
    made = mkdtemp(prefix="queuepool-testing-", dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None)
    atexit.register(_remove, made, os.getpid())
    return Path(made)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not by a child, which inherits the exit handler
        shutil.rmtree(folder, ignore_errors=True)


class SkippedTime:
    """The clock of SQLite files, ours in place of theirs."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._stores: list[Any] = []

    def take_over(self, engine: Engine, store: QueueStore) -> None:
        """Be the clock of this file: its statements get the time by a function, which a connection may replace.

        To fix the time in the statements, as ``store.clock`` does, takes the time of thirty pushes.
        """
        self._stores.append(store)

        @event.listens_for(engine, "connect")
        def replace(connection: Connection, _: object) -> None:
            connection.create_function("julianday", -1, lambda *_: _UNIX + (time.time() + self._seconds) / _DAY)

    def skip(self, seconds: float) -> None:
        """Go on as if ``seconds`` had passed."""
        self._set(self._seconds + seconds)

    def reset(self) -> None:
        """Show the real time again."""
        if self._seconds:
            self._set(0.0)

    def _set(self, seconds: float) -> None:
        self._seconds = seconds
        for store in self._stores:
            store.clock = ""  # read it again


#: the clock of all temporary stores
TIME = SkippedTime()


def skip_in(store: Any, seconds: float) -> None:
    """Stop the clock of any store ``seconds`` from now, until ``store.clock`` is set to an empty text."""
    store.clock = f"{store.now() + seconds:.6f}"


def next_times(
    job: Callable[..., Any] | type[Job], count: int = 1, *, after: datetime | None = None, timezone: str = "UTC"
) -> list[datetime]:
    """The next ``count`` due times of a job with ``schedule``, after ``after`` (now), in that time zone.

    ``timezone``: that of ``[schedule]`` in the pool's configuration, in which ``after`` is, if it names none. Raises
    ``ValueError`` for a job without a schedule, and for an unknown time zone.
    """
    cron, every = rule_of(_rule_of(job))
    place = zone(timezone)
    moment = after or datetime.now(place)
    since = moment if moment.tzinfo else moment.replace(tzinfo=place)
    due = due_after(timetable_of(cron, every, timezone), since.timestamp())
    return [datetime.fromtimestamp(at, place) for at in islice(due, count)]


def _rule_of(job: object) -> str:
    options = job.options if isinstance(job, JobFunction) else getattr(job, "job_options", None)
    if options is None or options.schedule is None:
        raise ValueError(f"{getattr(job, 'name', None) or getattr(job, 'job_name', None) or repr(job)} has no schedule")
    return str(options.schedule)
