"""Create Laravel's tables where there is no Laravel."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import click

from queuepool.cli import output
from queuepool.cli.flags import CONNECTION
from queuepool.cli.options import Where, located
from queuepool.config.connections import check_drivers
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import QueuepoolError
from queuepool.unix.exit_codes import FAILED


@click.command()
@located(*CONNECTION)
def migrate(where: Where) -> int:
    """Create Laravel's tables in a database, if they are missing"""
    connections = where.connections()
    places = _places(connections)
    if not places:
        names = ", ".join(connection.name for connection in connections)
        raise QueuepoolError(f"connection {names} is in Redis, which has no tables")
    for connection in connections:
        check_drivers(connection)
    return max([_make(url, tables) for url, tables in places.items()])


def _places(connections: Iterable[ConnectionSettings]) -> dict[str, dict[str, None]]:
    """The tables that belong in each database, in order, by its URL."""
    from queuepool.stores.sql.schema import TABLES

    found: dict[str, dict[str, None]] = {}
    for one in connections:
        caches = [(table, url) for url in (one.control_url, one.maintenance_url) for table in ("cache", "cache_locks")]
        for table, url in (*((table, one.url) for table in TABLES), ("failed_jobs", one.failed_url), *caches):
            if url and kind_of(url) == "sql":
                found.setdefault(url, {})[table] = None
    return found


def _make(url: str, tables: Iterable[str]) -> int:
    from queuepool.stores.sql import migrate as work  # imported here: its library may not be installed
    from queuepool.stores.sql.client import Client
    from queuepool.stores.sql.schema import oddity_of

    with closing(Client(url, create=True)) as client:
        made = work.migrate(client, list(tables))
        for table in made:
            output.say(f"made table {table}")
        problems = work.problems(client, list(tables))
        for problem in problems:
            output.complain(problem)
        if not problems and "jobs" in tables and (oddity := client.ask(oddity_of)):
            output.complain(f"note: {oddity}")
    if not made and not problems:
        output.say("nothing to do")
    return FAILED if problems else 0
