"""Limits: who holds places and who waits, and numbers set by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, parsed
from queuepool.cli.reading import Reading
from queuepool.config.pool_queues import places
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.operating.limits import limit_rows, set_number_of, unknown
from queuepool.unix.exit_codes import FAILED, OK

_NAME = click.argument("name", metavar="NAME", type=TEXT)


@click.group(cls=Verbs)
def limits() -> None:
    """List limits, with those that hold places and those that wait, or set their numbers"""


@limits.command("list")
@located(*CONNECTION)
@JSON
def list_them(where: Where, as_json: bool) -> int:
    """List limits: how many jobs hold places, how many are parked, in how many lines, whose turn is next, and which job
    waits the longest
    """
    reading = Reading(where.connections())

    def rows(connection: ConnectionSettings) -> Iterator[dict[str, Any]]:
        with closing(Queue(connection, by_hand=True)) as queue:
            for row in limit_rows(queue.stores):
                yield reading.place(connection) | row

    output.listing(reading.each(rows), as_json, spare=("granted", "by_hand", "lines", "pushed", "connection"))
    return reading.code


@limits.command("set")
@located(*CONNECTION)
@_NAME
@click.argument("number", metavar="N", type=parsed(places))
def set_number(where: Where, name: str, number: int) -> int:
    """Set the number of a limit, over what the code says, until it is reset; 0 lets no job start"""
    return _set(where, name, number)


@limits.command()
@located(*CONNECTION)
@_NAME
def reset(where: Where, name: str) -> int:
    """Have a limit follow the code again"""
    return _set(where, name, None)


def _set(where: Where, name: str, number: int | None) -> int:
    reading = Reading(where.connections())

    def done(connection: ConnectionSettings) -> Iterator[bool]:
        with closing(Queue(connection, by_hand=True)) as queue:
            if done := set_number_of(queue.stores, name, number):
                note(queue.stores, done.verb, done.subject)
                output.say(done.words)
                yield True

    if any([*reading.each(done)]):
        return OK
    output.complain(unknown(name))
    return FAILED
