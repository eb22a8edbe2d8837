"""Temporary stores: SQLite files of this process, in memory where the system allows; and ``make_tables``."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from queuepool.config.connections import check_drivers
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import StoreDenied
from queuepool.jobs.connecting import settings_at
from queuepool.stores.factory import Stores
from queuepool.stores.sql.ddl import statements_of
from queuepool.testing.skipped_time import SkippedTime

#: the clock of all temporary stores
TIME = SkippedTime()
#: where files are in memory, on Linux: a commit then waits for no disk
_IN_MEMORY = "/dev/shm"
#: seconds: no job of a test is taken for one whose worker died, however long a debugger holds it
_LEASE = 86400.0


def temporary_stores(settings: ConnectionSettings) -> Stores:
    """The stores that stand in for those of this connection: the same for each that differs only in its places.

    Keys, signing and what Laravel learns stay as they are.
    """
    return _stores(
        ConnectionSettings(
            name=settings.name, signing=settings.signing, signing_keys=settings.signing_keys, app_key=settings.app_key,
            previous_keys=settings.previous_keys, cipher=settings.cipher, outcomes=settings.outcomes,
            outcome_class=settings.outcome_class, php_failed=settings.php_failed, foreign=settings.foreign,
            retry_after=_LEASE,
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
    """Those of this process: a test may have forked it, and then they lie beside its parent's."""
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
    """Removed when the process that made it ends."""
    made = mkdtemp(prefix="queuepool-testing-", dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None)
    atexit.register(_remove, made, os.getpid())
    return Path(made)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not by a child, which inherits the exit handler
        shutil.rmtree(folder, ignore_errors=True)
