"""The queues: count, monitor, clear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.options import CONNECTION, JSON, Where, located, option, parsed
from queuepool.cli.output import FORCE, has_terminal, is_declined
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import masked
from queuepool.errors import StoreDown, StoreError
from queuepool.jobs.client import Queue
from queuepool.operating.queues import QueueMark, age, all_queues, complaints, marks_of, untaken
from queuepool.stores.contract import Sizes
from queuepool.unix.exit_codes import FAILED

#: the total at which artisan's queue:monitor calls a queue busy
_BUSY = 1000


def _flat(context: click.Context, argument: click.Parameter, given: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in given for name in names))


def one_queue(raw: str) -> str:
    """One queue's name. Raises ``ValueError`` for an invalid name or several."""
    names = values.queues(raw)
    if len(names) > 1:
        raise ValueError("must be one queue's name, without a comma")
    return names[0]


#: the argument of most verbs here: names, also separated by commas, as for artisan
QUEUES = click.argument("queues", metavar="[QUEUE]...", nargs=-1, type=parsed(values.queues), callback=_flat)


@click.command()
@located(*CONNECTION)
@QUEUES
@JSON
def size(where: Where, queues: Sequence[str], as_json: bool) -> int:
    """Count the jobs of queues

    By default: the pools' queues, the outcomes' queue, and all others that are not empty; with --pool, only its queues.
    """
    reading = Reading(where.connections())
    counted = _Counted(where, queues, reading, as_json)
    rows = (
        reading.place(one.connection)
        | {"queue": one.name, "size": one.sizes.total, "parked": one.queue.parked(one.name)}
        | _marked(one.mark, as_json)
        for one in counted.all()
    )
    output.listing(_with_parked(rows, as_json), as_json, spare=("parked", "connection"))
    counted.note_nowhere()
    return reading.code


@click.command()
@located(*CONNECTION)
@QUEUES
@option(
    "--max",
    "limit",
    metavar="COUNT",
    type=parsed(values.count),
    default=_BUSY,
    help="Alert at this many jobs or more  [default: 1000]",
)
@click.option("--fail", is_flag=True, help="Exit with 1 on an alert")
@JSON
def monitor(where: Where, queues: Sequence[str], limit: int, fail: bool, as_json: bool) -> int:
    """Show which queues are too long

    By default: the pools' queues, the outcomes' queue, and all others that are not empty; with --pool, only its queues.
    Warns of outcomes that wait for more than a minute.
    """
    reading = Reading(where.connections())
    counted, rows = _Counted(where, queues, reading, as_json), list[dict[str, Any]]()
    for connection, queue, name, sizes, mark in counted.all():
        measured = queue.stores.queue.measure(name)
        parts = _parts(name, sizes, queue.parked(name), limit, age(measured)) | _marked(mark, as_json)
        rows.append({"connection": connection.name, **parts})
        if name == connection.outcomes and (words := untaken(name, measured)):
            counted.warnings.append(f"warn: {words}")
    spare = ("parked", "quarantined", "reserved", "delayed", "connection")
    output.listing(_with_parked(rows, as_json), as_json, spare)
    counted.note_nowhere()
    return FAILED if fail and any(row["status"] == "ALERT" for row in rows) else reading.code


@click.command()
@located(*CONNECTION)
@QUEUES
@FORCE
def clear(where: Where, queues: Sequence[str], force: bool) -> int:
    """Drop the jobs of queues, by default the pools'"""
    where.require(*queues)
    meant = by_connection(where, queues)
    if not force and not has_terminal():
        raise click.UsageError("there is no terminal to ask at: give --force")
    with ExitStack() as stack:
        opened = [(stack.enter_context(closing(Queue(one, by_hand=True))), names) for one, names in meant.items()]
        if not force and is_declined(f"Drop all jobs of {_whose(opened)}?", "nothing was dropped"):
            return FAILED
        for queue, names in opened:
            place = f" on connection {queue.settings.name}" if len(opened) > 1 else ""
            for name in names:
                parked = queue.parked(name)
                dropped = queue.clear(name)
                of_them = f", {parked} of which waited for places of limits" if parked else ""
                output.say(f"dropped {output.counted(dropped, 'job')} of {name}{place}{of_them}")
                note(queue.stores, "clear", f"queue {name}", dropped)
    return 0


class _Count(NamedTuple):
    """What one queue holds, where it is, and what is odd about it."""

    connection: ConnectionSettings
    queue: Queue
    name: str
    sizes: Sizes
    mark: QueueMark


class _Counted:
    """The sizes of queues, connection by connection; one that the store refuses to count does not hide the others."""

    def __init__(self, where: Where, named: Sequence[str], reading: Reading, as_json: bool) -> None:
        self._as_json = as_json
        self._where = where
        self._named = named
        self._reading = reading
        self._held = set[str]()
        #: to be printed below the list
        self.warnings: list[str] = []

    def all(self) -> Iterator[_Count]:
        """Each queue's sizes, and where it is."""
        return self._reading.each(self._on)

    def note_nowhere(self) -> None:
        """Report the named queues that hold nothing and that no pool serves, then the warnings."""
        notes = (self._where.note_on(name) for name in self._named if name not in self._held)
        for words in (*(f"{one}, and it holds nothing" for one in notes if one), *self.warnings):
            output.complain(words)

    def _on(self, connection: ConnectionSettings) -> Iterator[_Count]:
        with closing(Queue(connection, by_hand=True)) as queue:
            named = self._named or all_queues(self._where, connection, queue, output.complain)
            found = {name: sizes for name in named if (sizes := self._sizes(queue, name))}
            marks = marks_of(self._where, queue, list(found), output.complain)
            if not self._as_json:
                self.warnings += complaints(marks, {name: one.total for name, one in found.items()})
            for name, sizes in found.items():
                yield _Count(connection, queue, name, sizes, marks[name])

    def _sizes(self, queue: Queue, name: str) -> Sizes | None:
        try:
            found = queue.sizes(name)
        except StoreDown:
            raise
        except StoreError as error:
            self._reading.refuse(f"queue {name}: {error}")
            self._held.add(name)
            return None
        self._held |= {name} if found.total or found.quarantined or queue.parked(name) else set()
        return found


def _marked(mark: QueueMark, as_json: bool) -> dict[str, Any]:
    """A row's text about the queue's mark: for people it is printed below the table."""
    return mark._asdict() if as_json else {}


def by_connection(where: Where, queues: Sequence[str]) -> dict[ConnectionSettings, list[str]]:
    """These queues, or the pools', by the connection that has them. Raises ``UsageError``."""
    if not queues:
        return {connection: list(where.queues(connection)) for connection in where.connections()}
    found: dict[ConnectionSettings, list[str]] = {}
    for queue in queues:
        found.setdefault(where.connection_of(queue), []).append(queue)
    return found


def _whose(opened: Sequence[tuple[Queue, Sequence[str]]]) -> str:
    """Which queues are meant, where, and how many jobs they have."""
    return " and of ".join(
        f"{', '.join(names)} on {masked(queue.settings.url)} ({sum(_all_in(queue, name) for name in names)} in all)"
        for queue, names in opened
    )


def _all_in(queue: Queue, name: str) -> int:
    return queue.size(name) + queue.parked(name)


def _with_parked(rows: Iterable[dict[str, Any]], as_json: bool) -> list[dict[str, Any]]:
    """A table has a column of parked jobs only if there are some: most pools have no limits."""
    found = list(rows)
    if not as_json and not any(row["parked"] for row in found):
        for row in found:
            del row["parked"]
    return found


def _parts(name: str, sizes: Sizes, parked: int, limit: int, oldest: float | None) -> dict[str, Any]:
    """Source: Illuminate/Queue/Console/MonitorCommand.php (13.x)."""
    return {
        "queue": name,
        "size": sizes.total,
        "pending": sizes.ready,
        "delayed": sizes.delayed,
        "reserved": sizes.reserved,
        "parked": parked,
        "quarantined": sizes.quarantined,
        "oldest_pending": oldest,
        "status": "ALERT" if sizes.total + parked >= limit else "OK",
    }
