"""The journal: who has done what to pools, queues, jobs and schedules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.options import CONNECTION, JSON, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.stores.factory import Stores
from queuepool.stores.journal import KEPT_LINES

_LINES = 100


@click.command()
@located(*CONNECTION)
@option("--since", "seconds", metavar="TIME", type=parsed(values.span), help="Only of the last 30m, 12h, 7d")
@option(
    "--limit",
    metavar="COUNT",
    type=parsed(values.count),
    default=_LINES,
    help=f"The last so many lines of each connection  [default: {_LINES}]",
)
@JSON
def journal(where: Where, seconds: float | None, limit: int, as_json: bool) -> int:
    """Show who has done what: pauses, restarts, what was put back or dropped

    Each verb that changes something leaves a line in the store, with who gave it and from which host. The last 5,000
    are kept, in Redis and in the table cache, which php artisan cache:clear empties.
    """
    reading = Reading(where.connections())

    def rows(connection: ConnectionSettings) -> Iterator[dict[str, Any]]:
        with closing(Stores(connection, by_hand=True)) as stores:
            first = stores.queue.now() - seconds if seconds is not None else 0.0
            for action in stores.journal.last(min(limit, KEPT_LINES)) if limit else ():
                if action.at >= first:
                    yield reading.place(connection) | _row(
                        action.at, action.by, action.verb, action.subject, action.count
                    )

    output.listing(reading.each(rows), as_json, spare=("connection", "count"))
    return reading.code


def _row(at: float, by: str, verb: str, subject: str, count: int | None) -> dict[str, Any]:
    return {"at": iso(at), "by": by, "verb": verb, "subject": subject, "count": count}
