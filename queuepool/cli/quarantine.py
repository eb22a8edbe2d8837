"""The quarantine: payloads that could not be jobs, shown safely."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.flags import CONNECTION
from queuepool.cli.group import Verbs
from queuepool.cli.options import JSON, TEXT, Where, located, parsed
from queuepool.cli.queues import QUEUES, one_queue
from queuepool.jobs.client import Queue
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.locks import Finder
from queuepool.stores.set_aside import Quarantined, Returned
from queuepool.unix.exit_codes import FAILED

#: bytes of a payload that a list and a single view show
_GLIMPSE, _VIEW = 40, 8 * 1024
_BATCH = 100
#: how a payload begins that was wrapped on its way, and the hint to give
_WRAPPED = (
    (rb"[sOa]:\d+:", "it is PHP-serialized: switch off the serializer of the producer's Redis connection"),
    (rb"\x1f\x8b|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18", "it is compressed: switch that off on the producer's connection"),
    (rb"\x80[\x02-\x05]", "it is a Python pickle, which is never read"),
    (rb"\xef\xbb\xbf", "it begins with a byte order mark"),
)
_QUEUE = click.argument("queue", type=parsed(one_queue))
_ID = click.argument("entry_id", metavar="ID", type=TEXT)


@click.group(cls=Verbs)
def quarantine() -> None:
    """List, show, retry or drop payloads that could not be jobs"""


@quarantine.command("list")
@located(*CONNECTION)
@QUEUES
@JSON
def list_them(where: Where, queues: Sequence[str], as_json: bool) -> None:
    """List the quarantine of queues, by default the pool's"""
    with closing(Queue(where.connection(), by_hand=True)) as connection:
        found = (
            _row(entry) for queue in queues or where.queues() for entry in connection.stores.quarantine.entries(queue)
        )
        output.listing(found, as_json)


@quarantine.command()
@located(*CONNECTION)
@_QUEUE
@_ID
@click.option("--raw", "as_bytes", is_flag=True, help="Print the payload's bytes unchanged")
def show(where: Where, queue: str, entry_id: str, as_bytes: bool) -> int:
    """Show one payload, at most 8 KiB of it"""
    with closing(Queue(where.connection(), by_hand=True)) as connection:
        entry = _entry(connection, queue, entry_id)
    if entry is None:
        return _not_found(queue, entry_id)
    if as_bytes:
        output.raw(entry.payload)
    else:
        _show(entry)
    return 0


@quarantine.command()
@located(*CONNECTION)
@_QUEUE
@_ID
def retry(where: Where, queue: str, entry_id: str) -> int:
    """Put one payload back on its queue unchanged"""
    with closing(Queue(where.connection(), by_hand=True)) as connection:
        entry = _entry(connection, queue, entry_id)
        back = partial(connection.stores.quarantine.requeue, queue, entry_id, None)
        locks = HeldLocks(connection.settings)
        match locks.put_back(connection.stores, entry.payload, back, ended=False) if entry else Returned.GONE:
            case Returned.DONE:
                return 0
            case Returned.HELD:
                output.complain(f"{entry_id} stays in the quarantine of {queue}: another job holds its unique lock")
                return FAILED
    return _not_found(queue, entry_id)


@quarantine.command()
@located(*CONNECTION)
@_QUEUE
@click.argument("entry_id", metavar="[ID]", required=False, type=TEXT)
@click.option("--all", "everything", is_flag=True, help="Drop all payloads of the queue")
def drop(where: Where, queue: str, entry_id: str | None, everything: bool) -> int:
    """Drop one payload, or all of a queue"""
    if everything == (entry_id is not None):
        raise click.UsageError("name one payload by ID, or say --all")
    with closing(Queue(where.connection(), by_hand=True)) as connection:
        if entry_id is None:
            output.say(f"dropped {output.counted(_drop_all(connection, queue), 'payload')}")
            return 0
        entry = _entry(connection, queue, entry_id)
        finder = HeldLocks(connection.settings).set_aside
        return 0 if entry and _drop(connection, entry, finder) else _not_found(queue, entry_id)


def _entry(connection: Queue, queue: str, entry_id: str) -> Quarantined | None:
    return next((one for one in connection.stores.quarantine.entries(queue) if one.id == entry_id), None)


def _drop(connection: Queue, entry: Quarantined, finder: Finder) -> bool:
    """Drop it with its unique locks."""
    unlocks = finder.locks_of(entry.payload) if finder.may_hold(entry.payload) else ()
    return connection.stores.quarantine.drop(entry.queue, entry.id, unlocks)


def _drop_all(connection: Queue, queue: str) -> int:
    """Drop only what was there at the start: more may come faster than this loop runs."""
    began, dropped, finder = connection.stores.queue.now(), 0, HeldLocks(connection.settings).set_aside
    while page := list(islice(_older(connection, queue, began), _BATCH)):
        dropped += sum(_drop(connection, entry, finder) for entry in page)
    return dropped


def _older(connection: Queue, queue: str, moment: float) -> Iterator[Quarantined]:
    return (entry for entry in connection.stores.quarantine.entries(queue) if entry.at <= moment)


def _not_found(queue: str, entry_id: str) -> int:
    output.complain(f"{entry_id} not found in the quarantine of {queue}")
    return FAILED


def _row(entry: Quarantined) -> dict[str, Any]:
    return {
        "id": entry.id,
        "queue": entry.queue,
        "reason": entry.reason,
        "at": iso(entry.at),
        "bytes": len(entry.payload),
        "payload": _glimpse(entry.payload, _GLIMPSE),
    }


def _show(entry: Quarantined) -> None:
    for name, value in _row(entry).items():
        if name != "payload":
            output.say(f"{name}: {value}")
    if hint := next((words for start, words in _WRAPPED if re.match(start, entry.payload)), ""):
        output.say(f"hint: {hint}")
    output.say(f"payload: {_glimpse(entry.payload, _VIEW)}")


def _glimpse(payload: bytes, max_bytes: int) -> str:
    cut = payload[:max_bytes].decode("utf-8", "backslashreplace")
    return f"{cut} … ({len(payload) - max_bytes} bytes more)" if len(payload) > max_bytes else cut
