"""The queues: count, monitor, clear."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from queuepool.cli import output
from queuepool.cli.ages import age, untaken
from queuepool.cli.flags import CONNECTION
from queuepool.cli.options import JSON, Where, located, option, parsed
from queuepool.cli.queue_marks import Mark, complaints, marks_of
from queuepool.config import values
from queuepool.config.urls import masked
from queuepool.errors import StoreDenied, StoreDown, StoreError
from queuepool.jobs.client import Queue
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
        raise ValueError("is one queue's name, without a comma")
    return names[0]


#: the argument of most verbs here: names, also separated by commas, as for artisan
QUEUES = click.argument("queues", metavar="[QUEUE]...", nargs=-1, type=parsed(values.queues), callback=_flat)


@click.command()
@located(*CONNECTION)
@QUEUES
@JSON
def size(where: Where, queues: Sequence[str], as_json: bool) -> int:
    """Count the jobs of queues

    By default the pool's queues, that of outcomes, and all others that are not empty.
    """
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        sizes = _sizes(queue, queues or _all(where, queue))
        found = {name: one for name, one in sizes.items() if one}
        marks = marks_of(where, queue, list(found))
    rows = ({"queue": name, "size": one.total, **_marked(marks[name], as_json)} for name, one in found.items())
    output.listing(rows, as_json)
    _complain(marks, found, as_json)
    return 0 if all(sizes.values()) else FAILED


@click.command()
@located(*CONNECTION)
@QUEUES
@option(
    "--max",
    "limit",
    metavar="COUNT",
    type=parsed(values.count),
    default=_BUSY,
    help="Alert at this many jobs and more  [default: 1000]",
)
@click.option("--fail", is_flag=True, help="Exit with 1 on an alert")
@JSON
def monitor(where: Where, queues: Sequence[str], limit: int, fail: bool, as_json: bool) -> int:
    """Show which queues are too long

    By default of the pool's queues, that of outcomes, and all others that are not empty. Warns of outcomes that wait
    for more than a minute.
    """
    connection = where.connection()
    with closing(Queue(connection, by_hand=True)) as queue:
        sizes = _sizes(queue, queues or _all(where, queue))
        found = {name: one for name, one in sizes.items() if one}
        measured = {name: queue.stores.measures.of(name) for name in found}
        marks = marks_of(where, queue, list(found))
    rows = [
        _parts(name, one, limit, age(measured[name])) | _marked(marks[name], as_json) for name, one in found.items()
    ]
    output.listing([{"connection": connection.name, **row} for row in rows], as_json)
    _complain(marks, found, as_json)
    outcomes = connection.outcomes
    if outcomes in measured and (words := untaken(outcomes, measured[outcomes])):
        output.complain(f"warn: {words}")
    return FAILED if (fail and any(row["status"] == "ALERT" for row in rows)) or not all(sizes.values()) else 0


@click.command()
@located(*CONNECTION)
@QUEUES
@click.option("--force", is_flag=True, help="Do not ask for confirmation")
def clear(where: Where, queues: Sequence[str], force: bool) -> int:
    """Drop the jobs of queues, by default the pool's"""
    connection, names = where.connection(), queues or where.queues()
    if not force and not _is_confirmed(f"Drop all jobs of {', '.join(names)} on {masked(connection.url)}?"):
        output.complain("nothing was dropped")
        return FAILED
    with closing(Queue(connection, by_hand=True)) as queue:
        for name in names:
            output.say(f"dropped {output.counted(queue.clear(name), 'job')} of {name}")
    return 0


def _sizes(queue: Queue, names: Iterable[str]) -> dict[str, Sizes | None]:
    """The sizes of each; ``None``, and a line, for one that the store refuses to count, as none of the others is."""
    found: dict[str, Sizes | None] = {}
    for name in names:
        try:
            found[name] = queue.sizes(name)
        except StoreDown:
            raise
        except StoreError as error:
            found[name] = None
            output.complain(f"queue {name}: {error}")
    return found


def _all(where: Where, connection: Queue) -> Iterator[str]:
    """The pools' queues and that of outcomes, then the others, if the store lets us list them."""
    configured = list(dict.fromkeys((*where.queues(), *filter(None, [where.connection().outcomes]))))
    yield from configured
    try:
        existing = connection.stores.queue.queues()
    except StoreDenied as error:  # a Redis user without +scan
        output.complain(f"note: queues that no pool of this configuration serves are left out: {error}")
    else:
        yield from (name for name in existing if name not in configured)


def _marked(mark: Mark, as_json: bool) -> dict[str, Any]:
    """What a row says of the queue's mark: for people it is said below the table."""
    return mark._asdict() if as_json else {}


def _complain(marks: Mapping[str, Mark], sizes: Mapping[str, Sizes], as_json: bool) -> None:
    if not as_json:
        for line in complaints(marks, {name: one.total for name, one in sizes.items()}):
            output.complain(line)


def _is_confirmed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask at: say --force")
    return click.confirm(question, err=True)


def _parts(name: str, sizes: Sizes, limit: int, oldest: float | None) -> dict[str, Any]:
    """Source: Illuminate/Queue/Console/MonitorCommand.php (13.x)."""
    return {
        "queue": name,
        "size": sizes.total,
        "pending": sizes.ready,
        "delayed": sizes.delayed,
        "reserved": sizes.reserved,
        "quarantined": sizes.quarantined,
        "oldest_pending": oldest,
        "status": "ALERT" if sizes.total >= limit else "OK",
    }
