"""What the pools of all hosts have done in the last hour, day or month, from what their stewards keep in the store."""

from __future__ import annotations

from contextlib import closing
from difflib import get_close_matches
from functools import reduce
from typing import Any, NamedTuple

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.history.past import HistorySpan, Past
from queuepool.history.rollup import LONGEST, MAX_QUEUES, Tally
from queuepool.operating.past_report import (
    busiest,
    chosen_of,
    counts_of_tally,
    document_of,
    job_times,
    queue_rows,
    read_past,
    times_of_tally,
)
from queuepool.stores.factory import Stores

_HOUR = 3600.0
#: the seconds of each unit, and the most lines
_UNITS = {"minute": 60, "hour": 3600, "day": 86400}
_MOST_LINES = 120
#: columns that a narrow terminal does without, the least needed first
_SPARE = (
    "run_p99", "cancelled", "lost", "given_back", "wait_p50", "released", "run_p50", "wait_p95",
    "quarantined", "oldest_most", "ready_most",
)  # fmt: skip


def _range(raw: str) -> float:
    """Seconds from a minute to the longest time that is kept."""
    found = values.span(raw)
    if not 60.0 <= found <= LONGEST:
        raise ValueError(f"{values.shown(raw)} is not from 1m to 35d")
    return found


@click.command()
@located(*CONNECTION)
@option("--range", "seconds", metavar="TIME", type=parsed(_range), default=_HOUR, help="From 1m to 35d  [default: 1h]")
@option("--queue", metavar="QUEUE", type=TEXT, help="Only jobs from this queue")
@option("--job", metavar="NAME", type=TEXT, help="Only jobs of this name")
@option(
    "--by",
    "unit",
    metavar="UNIT",
    type=click.Choice(list(_UNITS)),
    help="Show a line for each minute, hour or day (UTC)",
)
@JSON
def history(where: Where, seconds: float, queue: str | None, job: str | None, unit: str | None, as_json: bool) -> int:
    """Show rates, run times and waits of the past, by job; then queues and events

    Covers the pools of all hosts on the configuration's connections, except those with history = 0 or metrics = no.
    A range is shown in minutes up to 2h, in ten minutes up to 48h, and in hours beyond that. Attempts of Laravel's own
    workers are not included. Queues are shown as they were at the ends of these times, and events (exits of workers by
    reason, losses of the store) only without --pool, --queue and --job. With --pool, jobs are those of its queues.

    With --by there is a line for each minute, hour or day instead, at most the last 120: all chosen jobs together, and
    the largest number that was ready in all queues.
    """
    if unit and as_json:
        raise click.UsageError("--json has every bucket of the range: leave out --by")
    reading = Reading(where.connections())
    found = reading.each(lambda connection: [_found(where, connection, seconds, queue, job)])
    if as_json:
        documents = [
            output.versioned(reading.place(one.connection) | document_of(one.span, one.chosen)) for one in found
        ]
        output.document(documents if reading.is_of_several else documents[0])
        return reading.code
    for one in found:
        if reading.is_of_several:
            output.say(f"connection {one.connection.name}:")
        if not (_print_by(one.span, one.chosen, _UNITS[unit]) if unit else _print(one.span, one.chosen)):
            output.say(_absence(one.past, queue, job))
    return reading.code


class _Found(NamedTuple):
    """One connection's history, and the part of it that was asked for."""

    connection: ConnectionSettings
    span: HistorySpan
    past: Past
    chosen: Past


def _found(where: Where, connection: ConnectionSettings, seconds: float, queue: str | None, job: str | None) -> _Found:
    with closing(Stores(connection, by_hand=True)) as stores:
        span, past = read_past(stores, seconds)
    if past.ignored:
        output.complain(f"{output.counted(past.ignored, 'record')} of the history cannot be read")
    if past.left_out:
        output.complain(f"a pool keeps its {MAX_QUEUES} fullest queues: up to {past.left_out} are left out")
    queues = where.queues(connection) if where.is_part else None
    if queue is not None:
        where.require(queue)
        queues = (queue,)
    return _Found(connection, span, past, chosen_of(past, queues, job))


def _absence(past: Past, queue: str | None, job: str | None) -> str:
    """Why nothing is shown."""
    queues, jobs = {queue for queue, _ in past.totals()}, {job for _, job in past.totals()}
    for what, name, known in (("queue", queue, queues | {*past.by_queue()}), ("job", job, jobs)):
        if name and name not in known:
            close = get_close_matches(name, known, 1)
            return f"no {what} {name} in this time" + (f"; did you mean {close[0]}?" if close else "")
    return "nothing was done in this time"


def _print(span: HistorySpan, past: Past) -> int:
    """Print the tables that are not empty; returns how many there are."""
    minutes = past.minutes(span.buckets[0], span.now)
    jobs = [job_times(names, tally, minutes) for names, tally in busiest(past)]
    events = [{"event": event, "count": count} for event, count in past.event_totals().items()]
    tables = [rows for rows in (jobs, list(queue_rows(past)), events) if rows]
    for number, rows in enumerate(tables):
        if number:
            click.echo()
        output.listing(rows, as_json=False, spare=_SPARE)
    return len(tables)


def _print_by(span: HistorySpan, past: Past, seconds: int) -> int:
    """Print a line for each period of ``seconds``; returns how many there are. Raises ``UsageError``."""
    if seconds < span.grain.seconds:
        raise click.UsageError(
            f"a range this long is kept in steps of {span.grain.name}: give a shorter --range, or a larger --by"
        )
    rows = [_line(span, past, at, seconds) for at in dict.fromkeys(at // seconds * seconds for at in span.buckets)]
    if not any(row["ended"] or row["ready"] for row in rows):
        return 0
    if left_out := len(rows[:-_MOST_LINES]):
        output.complain(f"the first {left_out} lines are left out: give a shorter --range, or a larger --by")
    output.listing(rows[-_MOST_LINES:], as_json=False)
    return len(rows)


def _line(span: HistorySpan, past: Past, at: int, seconds: int) -> dict[str, Any]:
    """What was done in the ``seconds`` from ``at`` on, and the most jobs that were ready in all queues together."""
    buckets = [one for one in span.buckets if at <= one < at + seconds]
    total = reduce(Tally.plus, (tally for one in buckets for tally in past.gained[one].values()), Tally())
    counts, times = counts_of_tally(total), times_of_tally(total)
    ready = [sum(sizes.ready for sizes in past.queues.get(one, {}).values()) for one in buckets]
    minutes = past.minutes(max(at, span.buckets[0]), min(at + seconds, span.now))
    return {
        "at": f"{iso(at)[:16]}Z",
        "ended": total.ended,
        **{name: counts[name] for name in ("failed", "lost")},
        "per_minute": round(total.ended / minutes, 2),
        **{name: times[name] for name in ("run_p95", "wait_p95")},
        "ready": max(ready, default=0),
    }
