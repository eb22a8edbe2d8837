"""Create Laravel's tables where there is no Laravel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import click

from queuepool.cli import output
from queuepool.cli.options import CONNECTION, Where, located
from queuepool.config.connections import check_drivers
from queuepool.errors import QueuepoolError
from queuepool.unix.exit_codes import FAILED

if TYPE_CHECKING:
    from queuepool.stores.sql.tables import TableNames


@click.command()
@located(*CONNECTION)
def migrate(where: Where) -> int:
    """Create Laravel's tables in a database, if they are missing"""
    from queuepool.stores.sql.migrate import places_of  # imported here: its library may not be installed

    connections = where.connections()
    places = places_of(connections)
    if not places:
        names = ", ".join(connection.name for connection in connections)
        raise QueuepoolError(f"connection {names} is in Redis, which has no tables")
    for connection in connections:
        check_drivers(connection)
    return max([_make(url, names, tables) for (url, names), tables in places.items()])


def _make(url: str, names: TableNames, tables: Sequence[str]) -> int:
    from queuepool.stores.sql import migrate as work
    from queuepool.stores.sql.tables import oddity_of

    with closing(work.client_at(url, names)) as client:
        made = work.migrate(client, tables)
        for table in made:
            output.say(f"created table {table}")
        problems = work.problems(client, tables)
        for problem in problems:
            output.complain(problem)
        if not problems and "jobs" in tables and (oddity := client.ask(partial(oddity_of, table=client.tables.jobs))):
            output.complain(f"note: {oddity}")
    if not made and not problems:
        output.say("nothing to do")
    return FAILED if problems else 0
