"""The quarantine: payloads that could not be jobs, shown safely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.finding import filtered, refusal
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, parsed
from queuepool.cli.output import FORCE, has_terminal, is_declined
from queuepool.cli.queues import QUEUES, by_connection, one_queue
from queuepool.cli.reading import Reading
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import masked
from queuepool.jobs.client import Queue
from queuepool.operating.quarantine import drop_entry, entry_of, glimpse, hint_of, put_back, quarantine_row
from queuepool.search.filters import Filter
from queuepool.search.look import Look
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.records import Quarantined, Returned
from queuepool.unix.exit_codes import FAILED

#: bytes of a payload that a single view shows
_VIEW = 8 * 1024
_BATCH = 100
_QUEUE = click.argument("queue", type=parsed(one_queue))
_ID = click.argument("entry_id", metavar="ID", type=TEXT)
_SOME_QUEUE = click.argument("queue", metavar="[QUEUE]", required=False, type=parsed(one_queue))
_SOME_ID = click.argument("entry_id", metavar="[ID]", required=False, type=TEXT)


@click.group(cls=Verbs)
def quarantine() -> None:
    """List, show, retry or drop payloads that could not be jobs"""


@quarantine.command("list")
@located(*CONNECTION)
@QUEUES
@JSON
def list_them(where: Where, queues: Sequence[str], as_json: bool) -> int:
    """List the quarantine of queues, by default the pools'"""
    reading = Reading(where.connections())

    def rows(connection: ConnectionSettings) -> Iterator[dict[str, Any]]:
        with closing(Queue(connection, by_hand=True)) as opened:
            for queue in queues or where.queues(connection):
                entries = opened.stores.records.quarantined(queue)
                yield from (reading.place(connection) | quarantine_row(entry) for entry in entries)

    output.listing(reading.each(rows), as_json, spare=("bytes", "at", "connection"))
    return reading.code


@quarantine.command()
@located(*CONNECTION)
@_QUEUE
@_ID
@click.option("--raw", "as_bytes", is_flag=True, help="Print the payload's bytes unchanged")
def show(where: Where, queue: str, entry_id: str, as_bytes: bool) -> int:
    """Show one payload, at most 8 KiB of it"""
    with closing(Queue(where.connection_of(queue), by_hand=True)) as connection:
        entry = entry_of(connection, queue, entry_id)
    if entry is None:
        return _not_found(queue, entry_id)
    if as_bytes:
        output.raw(entry.payload)
    else:
        _show(entry)
    return 0


@quarantine.command()
@located(*CONNECTION)
@_SOME_QUEUE
@_SOME_ID
@click.option("--all", "everything", is_flag=True, help="Put back all payloads of the queue, or of the pools' queues")
@filtered
@FORCE
def retry(where: Where, queue: str | None, entry_id: str | None, everything: bool, wanted: Filter, force: bool) -> int:
    """Put payloads back on their queue unchanged: one, or all, or all that fit

    Unless it is one, it asks first at a terminal.
    """
    return _each(where, queue, entry_id, everything, wanted, _Way("Put back", "put back", put_back, asks=not force))


@quarantine.command()
@located(*CONNECTION)
@_SOME_QUEUE
@_SOME_ID
@click.option("--all", "everything", is_flag=True, help="Drop all payloads of the queue, or of the pools' queues")
@filtered
@FORCE
def drop(where: Where, queue: str | None, entry_id: str | None, everything: bool, wanted: Filter, force: bool) -> int:
    """Drop payloads: one, or all, or all that fit

    Unless it is one, it asks first at a terminal.
    """
    return _each(where, queue, entry_id, everything, wanted, _Way("Drop", "dropped", drop_entry, asks=not force))


@dataclass(frozen=True, slots=True)
class _Way:
    """What is done with each payload, and the words to ask and report it."""

    verb: str
    done: str
    act: Callable[[Queue, HeldLocks, Quarantined], Returned]
    asks: bool

    @property
    def verb_name(self) -> str:
        """As it is typed."""
        return "drop" if self.verb == "Drop" else "retry"


def _each(where: Where, queue: str | None, entry_id: str | None, everything: bool, wanted: Filter, way: _Way) -> int:
    if (everything or not wanted.is_empty) == (entry_id is not None):
        raise click.UsageError("name one payload by ID, or give --all or filters")
    if queue and entry_id:
        with closing(Queue(where.connection_of(queue), by_hand=True)) as opened:
            return _one(opened, queue, entry_id, way)
    where.require(*filter(None, [queue]))
    meant = by_connection(where, [queue] if queue else [])
    with ExitStack() as stack:
        several = [(stack.enter_context(closing(Queue(one, by_hand=True))), queues) for one, queues in meant.items()]
        found = [_Ids(opened, queue, _ids(opened, queue, wanted)) for opened, queues in several for queue in queues]
        found = [one for one in found if one.ids]
        if not found:
            output.say(f"{way.done} 0 payloads")
        elif way.asks and not (has_terminal() or wanted.is_empty):
            raise click.UsageError(refusal(way.verb, _counted(found)))
        elif way.asks and has_terminal() and is_declined(f"{way.verb} {_counted(found)}?", f"nothing was {way.done}"):
            return FAILED
        return max([_all(one, way) for one in found], default=0)


class _Ids(NamedTuple):
    """The payloads that a queue's quarantine has at the start: more may come faster than they are dealt with."""

    opened: Queue
    queue: str
    ids: set[str]


def _ids(opened: Queue, queue: str, wanted: Filter) -> set[str]:
    return {job.id for job in Look(opened.stores, wanted).quarantined(queue)}


def _counted(found: Sequence[_Ids]) -> str:
    """How many payloads of which queues, and where."""
    return " and ".join(
        f"{output.counted(len(one.ids), 'payload')} of queue {one.queue} on {masked(one.opened.settings.url)}"
        for one in found
    )


def _one(opened: Queue, queue: str, entry_id: str, way: _Way) -> int:
    entry = entry_of(opened, queue, entry_id)
    match way.act(opened, HeldLocks(opened.settings), entry) if entry else Returned.GONE:
        case Returned.DONE:
            note(opened.stores, f"quarantine {way.verb_name}", f"payload {entry_id} of queue {queue}", 1)
            return 0
        case Returned.HELD:
            output.complain(f"{entry_id} stays in the quarantine of {queue}: another job holds its unique lock")
            return FAILED
    return _not_found(queue, entry_id)


def _all(meant: _Ids, way: _Way) -> int:
    """Do it with all of one queue; returns the exit code."""
    opened, queue, ids = meant
    locks, left, found = HeldLocks(opened.settings), set(ids), Counter[Returned]()
    while page := list(islice(_among(opened, queue, left), _BATCH)):
        left.difference_update(entry.id for entry in page)
        found.update(way.act(opened, locks, entry) for entry in page)
    if held := found[Returned.HELD]:
        stay = f"{output.counted(held, 'payload')} of queue {queue} left"
        output.complain(f"{stay}: other jobs hold their unique locks")
    words = f"{output.counted(found[Returned.DONE], 'payload')} of queue {queue} on connection {opened.settings.name}"
    output.say(f"{way.done} {words}")
    note(opened.stores, f"quarantine {way.verb_name}", f"queue {queue}", found[Returned.DONE])
    return FAILED if held else 0


def _among(opened: Queue, queue: str, ids: Container[str]) -> Iterator[Quarantined]:
    return (entry for entry in opened.stores.records.quarantined(queue) if entry.id in ids)


def _not_found(queue: str, entry_id: str) -> int:
    output.complain(f"{entry_id} not found in the quarantine of {queue}")
    return FAILED


def _show(entry: Quarantined) -> None:
    for name, value in quarantine_row(entry).items():
        if name != "payload":
            output.say(f"{name}: {value}")
    if hint := hint_of(entry):
        output.say(f"hint: {hint}")
    output.say(f"payload: {glimpse(entry.payload, _VIEW)}")
