"""The locks of unique jobs: listed, and freed where the job that holds one is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.flags import CONNECTION
from queuepool.cli.group import Verbs
from queuepool.cli.options import JSON, TEXT, Where, located
from queuepool.jobs.client import Queue
from queuepool.payload.ending import Unlock
from queuepool.stores.factory import Stores
from queuepool.stores.locks import PREFIX
from queuepool.unix.exit_codes import FAILED


@click.group(cls=Verbs)
def locks() -> None:
    """List the locks of unique jobs, or free them"""


@locks.command("list")
@located(*CONNECTION)
@JSON
def list_them(where: Where, as_json: bool) -> None:
    """List the locks that are held: by which owner, where, and until when

    As long as one is held, a dispatch of its job and identity adds nothing. The owner is in the job's payload.
    """
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        output.listing(_rows(queue.stores), as_json)


@locks.command()
@located(*CONNECTION)
@click.argument("names", metavar="LOCK...", nargs=-1, required=True, type=TEXT)
def free(where: Where, names: Sequence[str]) -> int:
    """Free locks by their names, whoever holds them

    A job that holds one goes on; another of its kind may be dispatched beside it.
    """
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        return max([_free(queue.stores, name) for name in dict.fromkeys(names)])


def _rows(stores: Stores) -> Iterator[dict[str, Any]]:
    now = stores.queue.now()
    for kind, place in stores.locks.items():
        for lock in place.held():
            ends = None if lock.seconds is None else iso(now + lock.seconds)
            yield {"lock": lock.name, "owner": lock.owner, "store": kind, "ends": ends}


def _free(stores: Stores, given: str) -> int:
    name = given if given.startswith(PREFIX) else PREFIX + given
    if not sum(place.release([Unlock(name)]) for place in stores.locks.values()):
        output.complain(f"no lock {name} is held")
        return FAILED
    output.say(f"freed {name}")
    return 0
