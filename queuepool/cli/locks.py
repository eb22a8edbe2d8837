"""The locks of unique jobs: listed, and freed where the job that holds one is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located
from queuepool.cli.reading import Reading
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.jobs.client import Queue
from queuepool.payload.lease import Unlock
from queuepool.payload.unique_locks import PREFIX
from queuepool.stores.factory import Stores
from queuepool.unix.exit_codes import FAILED


@click.group(cls=Verbs)
def locks() -> None:
    """List the locks of unique jobs, or free them"""


@locks.command("list")
@located(*CONNECTION)
@JSON
def list_them(where: Where, as_json: bool) -> int:
    """List the held locks: their owners, stores and ends

    While one is held, a dispatch of the same job and unique id adds nothing. The owner is in the job's payload.
    """
    reading = Reading(where.whole_connections("locks belong to"))

    def rows(connection: ConnectionSettings) -> Iterator[dict[str, Any]]:
        with closing(Queue(connection, by_hand=True)) as queue:
            yield from (reading.place(connection) | row for row in _rows(queue.stores))

    output.listing(reading.each(rows), as_json, spare=("owner", "store", "connection", "ends"))
    return reading.code


@locks.command()
@located(*CONNECTION)
@click.argument("names", metavar="LOCK...", nargs=-1, required=True, type=TEXT)
def free(where: Where, names: Sequence[str]) -> int:
    """Free locks by name, whoever holds them

    A job that holds one keeps running; an equal one can then be dispatched beside it.
    """
    connections = where.whole_connections("locks belong to")
    with ExitStack() as stack:
        places = [stack.enter_context(closing(Queue(one, by_hand=True))).stores for one in connections]
        return max([_free(places, name) for name in dict.fromkeys(names)])


def _rows(stores: Stores) -> Iterator[dict[str, Any]]:
    now = stores.queue.now()
    for url, place in stores.locks.items():
        for lock in place.held():
            ends = None if lock.seconds is None else iso(now + lock.seconds)
            yield {"lock": lock.name, "owner": lock.owner, "store": kind_of(url), "ends": ends}


def _free(stores: Sequence[Stores], given: str) -> int:
    name = given if given.startswith(PREFIX) else PREFIX + given
    freed = [one for one in stores if sum([place.release([Unlock(name)]) for place in one.locks.values()])]
    if not freed:
        output.complain(f"no lock {name} is held")
        return FAILED
    output.say(f"freed {name}")
    for one in freed:
        note(one, "locks free", f"lock {name}")
    return 0
