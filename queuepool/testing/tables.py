"""``make_tables``: what ``queuepool migrate`` does, for the database of an application's tests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from queuepool.config.connections import check_drivers
from queuepool.errors import StoreDenied
from queuepool.jobs.connecting import settings_at


def make_tables(where: str | Path | None = None, *, connection: str | None = None) -> list[str]:
    """Make the queue's tables where they are missing, as ``queuepool migrate`` does, and return their names.

    ``where`` and ``connection`` as for ``connect``. Redis has no tables: nothing is made. A table that is there is left
    as it is. Raises ``ConfigError``, ``StoreDenied`` for a table that cannot be used, and ``StoreError``.
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
