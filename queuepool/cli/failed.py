"""The failed store: list, retry, drop. Long stores are read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.flags import CONNECTION
from queuepool.cli.options import JSON, TEXT, Where, located, option, parsed
from queuepool.cli.queues import one_queue
from queuepool.config import values
from queuepool.jobs.client import Queue
from queuepool.log.tracebacks import headline
from queuepool.payload.uncounted import wanted_again
from queuepool.settlement.held_locks import HeldLocks
from queuepool.settlement.states import retried
from queuepool.stores.set_aside import FailedJob, Returned
from queuepool.unix.exit_codes import FAILED

#: records in one batch
_BATCH = 1000
_HOUR = 3600.0
_IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=TEXT)


@click.command()
@located(*CONNECTION)
@click.argument("job_id", metavar="[ID]", required=False, type=TEXT)
@JSON
def failed(where: Where, job_id: str | None, as_json: bool) -> int:
    """List failed jobs, or show the one with this ID"""
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        if job_id is None:
            _list(map(_json_row if as_json else _row, _all(queue)), as_json)
            _note_pending(queue)
            return 0
        record = queue.stores.failed.get(job_id)
    if record is None:
        return _not_found(job_id)
    _show(record, as_json)
    return 0


@click.command()
@located(*CONNECTION)
@click.argument("ids", metavar="[ID... | all]", nargs=-1, type=TEXT)
@option("--queue", metavar="QUEUE", type=parsed(one_queue), help="Retry all jobs that failed on this queue")
def retry(where: Where, ids: Sequence[str], queue: str | None) -> int:
    """Put failed jobs back on their queues, with all their tries"""
    everything = ids == ("all",) or (queue is not None and not ids)
    if not (ids or everything) or (queue is not None and not everything):
        raise click.UsageError("name failed jobs by ID, or say all, or --queue")
    with closing(Queue(where.connection(), by_hand=True)) as connection:
        locks = HeldLocks(connection.settings)
        if everything:
            put_back, held = _retry_all(connection, locks, queue)
            code = FAILED if held else 0
        else:
            codes = [_retry(connection, locks, job_id) for job_id in dict.fromkeys(ids)]
            put_back, code = codes.count(0), max(codes)
    output.say(f"{output.counted(put_back, 'job')} put back")
    return code


@click.command()
@located(*CONNECTION)
@_IDS
def forget(where: Where, ids: Sequence[str]) -> int:
    """Drop failed jobs by ID"""
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        return max([_forget(queue, job_id) for job_id in dict.fromkeys(ids)])


@click.command()
@located(*CONNECTION)
@option("--hours", metavar="HOURS", type=parsed(values.count), default=0, help="Keep failures of the last HOURS")
def flush(where: Where, hours: int) -> None:
    """Drop all failed jobs"""
    _prune(where, hours)


@click.command("prune-failed")
@located(*CONNECTION)
@option(
    "--hours",
    metavar="HOURS",
    type=parsed(values.count),
    default=24,
    help="Keep failures of the last HOURS  [default: 24]",
)
def prune(where: Where, hours: int) -> None:
    """Drop old failed jobs"""
    _prune(where, hours)


def _list(rows: Iterator[dict[str, Any]], as_json: bool) -> None:
    if first := next(rows, None):
        output.listing(chain([first], rows), as_json)
    elif as_json:
        output.listing([], as_json)
    else:
        output.complain("no failed jobs")


def _note_pending(queue: Queue) -> None:
    """Mention failed jobs that are not in the list yet."""
    forwarder = queue.stores.forwarder
    if forwarder and (waiting := forwarder.count()):
        output.complain(
            f"{output.counted(waiting, 'failed job')} not yet recorded: the failed store does not take them"
        )


def _prune(where: Where, hours: int) -> None:
    dropped = 0
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        store = queue.stores.failed
        before = store.now() - hours * _HOUR
        finder = HeldLocks(queue.settings).set_aside
        while keys := store.older_than(before, _BATCH):
            dropped += store.drop(keys, finder)
    output.say(f"dropped {output.counted(dropped, 'failed job')}")


def _all(queue: Queue) -> Iterator[FailedJob]:
    first = 0
    while page := queue.stores.failed.page(first, _BATCH):
        yield from page
        first += _BATCH


def _retry_all(connection: Queue, locks: HeldLocks, queue: str | None) -> tuple[int, int]:
    """Retry only what had failed at the start: workers may fail jobs again faster than this loop runs.

    Returns how many were put back, and how many were not because of their locks.
    """
    store = connection.stores.failed
    began, found = store.now(), Counter[Returned]()
    while page := store.page(found.total() - found[Returned.DONE], _BATCH):
        for record in page:
            is_meant = record.failed_at <= began and queue in (None, record.queue)
            found[_put_back(connection, locks, record) if is_meant else Returned.GONE] += 1
    if held := found[Returned.HELD]:
        output.complain(f"{output.counted(held, 'failed job')} left: other jobs hold their unique locks")
    return found[Returned.DONE], held


def _retry(connection: Queue, locks: HeldLocks, job_id: str) -> int:
    record = connection.stores.failed.get(job_id)
    match _put_back(connection, locks, record) if record else Returned.GONE:
        case Returned.DONE:
            return 0
        case Returned.HELD:
            output.complain(f"failed job {job_id} stays: another job holds its unique lock")
            return FAILED
    return _not_found(job_id)


def _put_back(connection: Queue, locks: HeldLocks, record: FailedJob) -> Returned:
    stores, record = connection.stores, replace(record, payload=wanted_again(record.payload))
    back = partial(stores.failed.retry, record, None, retried(record, stores.states.get))
    return locks.put_back(stores, record.payload.encode(), back, ended=True)


def _forget(queue: Queue, job_id: str) -> int:
    record = queue.stores.failed.get(job_id)
    finder = HeldLocks(queue.settings).set_aside
    return 0 if record and queue.stores.failed.drop([record.key], finder) else _not_found(job_id)


def _not_found(job_id: str) -> int:
    output.complain(f"failed job {job_id} not found")
    return FAILED


def _row(record: FailedJob) -> dict[str, Any]:
    """Source: Illuminate/Queue/Console/ListFailedCommand.php (13.x) for the names."""
    return {
        "id": record.id,
        "connection": record.connection,
        "queue": record.queue,
        "class": record.name,
        "attempts": record.attempts,
        "failed_at": iso(record.failed_at),
        "exception": headline(record.exception),
    }


def _json_row(record: FailedJob) -> dict[str, Any]:
    """The same, also with our word for what artisan calls the class."""
    return _row(record) | {"name": record.name}


def _show(record: FailedJob, as_json: bool) -> None:
    facts = asdict(record) | {"failed_at": iso(record.failed_at)}
    del facts["mark"]
    if as_json:
        output.versioned(facts | {"class": record.name})
        return
    trace = facts.pop("exception")
    for name, value in facts.items():
        output.say(f"{name}: {'-' if value is None else value}")
    output.say("exception:")
    output.show(trace)
