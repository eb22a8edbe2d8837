"""The failed store: list, retry, drop. Long stores are read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, option, parsed
from queuepool.cli.output import FORCE, has_terminal, is_declined
from queuepool.cli.queues import one_queue
from queuepool.cli.reading import Reading
from queuepool.cli.scopes import BATCH, Scope, by_queue, refuse_a_bare_name, scope_of
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.log.tracebacks import headline
from queuepool.payload.uncounted import wanted_again
from queuepool.settlement.states import retried
from queuepool.stores.records import FailedJob, RecordKey, Returned
from queuepool.unix.exit_codes import FAILED

_HOUR = 3600.0
_IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True, type=TEXT)
_NOTHING_DROPPED = "nothing was dropped"


@click.command()
@located(*CONNECTION)
@click.argument("job_id", metavar="[ID]", required=False, type=TEXT)
@JSON
def failed(where: Where, job_id: str | None, as_json: bool) -> int:
    """List failed jobs, or show the one with this ID

    Covers all connections of the configuration; with --pool, only that pool's queues.
    """
    if job_id is not None:
        return _show_one(where, job_id, as_json)
    reading = Reading(where.connections())
    _list(map(_json_row if as_json else _row, reading.each(partial(_all, where))), as_json)
    return reading.code


@click.command()
@located(*CONNECTION)
@click.argument("ids", metavar="[ID... | all]", nargs=-1, type=TEXT)
@option("--queue", metavar="QUEUE", type=parsed(one_queue), help="Retry all jobs that failed on this queue")
@FORCE
def retry(where: Where, ids: Sequence[str], queue: str | None, force: bool) -> int:
    """Put failed jobs back on their queues, with all their tries

    Covers all connections of the configuration; with --pool, only that pool's queues. Before it retries all of them, it
    asks at a terminal.
    """
    everything = ids == ("all",) or (queue is not None and not ids)
    if not (ids or everything) or (queue is not None and not everything):
        raise click.UsageError("name failed jobs by ID, or give all or --queue")
    with _scopes(where, queue) as scopes:
        if not everything:
            return _retry_some(scopes, ids)
        if not force and _is_declined("Put back", scopes, "nothing was put back"):
            return FAILED
        return max([_retry_all(scope) for scope in scopes])


@click.command()
@located(*CONNECTION)
@_IDS
@FORCE
def forget(where: Where, ids: Sequence[str], force: bool) -> int:
    """Drop failed jobs by ID

    With --pool, only those of that pool's queues. Before it drops several, it asks at a terminal.
    """
    with _scopes(where) as scopes:
        wanted = dict.fromkeys(ids)
        found = [(scope, record.key, record.queue) for scope, record in _several(scopes, wanted)]
        if len(found) > 1 and not force and has_terminal():
            jobs = f"{output.counted(len(found), 'failed job')}{by_queue(Counter(queue for _, _, queue in found))}"
            if is_declined(f"Drop {jobs}?", _NOTHING_DROPPED):
                return FAILED
        dropped = sum(_drop(scope, [key for other, key, _ in found if other is scope]) for scope in scopes)
    output.say(f"dropped {output.counted(dropped, 'failed job')}")
    return 0 if dropped == len(wanted) else FAILED


@click.command()
@located(*CONNECTION)
@option("--hours", metavar="HOURS", type=parsed(values.count), default=0, help="Keep failures of the last HOURS")
@FORCE
def flush(where: Where, hours: int, force: bool) -> int:
    """Drop all failed jobs

    Covers all connections of the configuration; with --pool, only that pool's queues. At a terminal, it asks first.
    """
    return _prune(where, hours, force)


@click.command("prune-failed")
@located(*CONNECTION)
@option(
    "--hours",
    metavar="HOURS",
    type=parsed(values.count),
    default=24,
    help="Keep failures of the last HOURS  [default: 24]",
)
@FORCE
def prune(where: Where, hours: int, force: bool) -> int:
    """Drop old failed jobs

    Covers all connections of the configuration; with --pool, only that pool's queues. At a terminal, it asks first.
    """
    return _prune(where, hours, force)


def _show_one(where: Where, job_id: str, as_json: bool) -> int:
    reading = Reading(where.connections())
    if record := next(reading.each(partial(_one, where, job_id)), None):
        _show(record, as_json)
        return reading.code
    return _not_found(job_id)


def _one(where: Where, job_id: str, connection: ConnectionSettings) -> Iterator[FailedJob]:
    with scope_of(where, connection) as scope:
        if record := scope.get(job_id):
            yield record


def _list(rows: Iterator[dict[str, Any]], as_json: bool) -> None:
    if first := next(rows, None):
        output.listing(chain([first], rows), as_json, spare=("attempts", "connection", "failed_at"))
    elif as_json:
        output.listing([], as_json)
    else:
        output.complain("no failed jobs")


def _all(where: Where, connection: ConnectionSettings) -> Iterator[FailedJob]:
    with scope_of(where, connection) as scope:
        yield from scope.records()
        _note_pending(scope.queue)


def _note_pending(queue: Queue) -> None:
    """Mention failed jobs that are not in the list yet."""
    forwarder = queue.stores.forwarder
    if forwarder and (waiting := forwarder.count()):
        output.complain(
            f"{output.counted(waiting, 'failed job')} not yet recorded: the failed store does not take them"
        )


@contextmanager
def _scopes(where: Where, queue: str | None = None) -> Iterator[list[Scope]]:
    """The scopes that a verb changes, all opened before the first is changed. Raises ``UsageError``."""
    refuse_a_bare_name(where)
    with ExitStack() as stack:
        yield [stack.enter_context(scope_of(where, one, queue=queue)) for one in where.connections()]


def _is_declined(verb: str, scopes: Sequence[Scope], otherwise: str, hours: int = 0) -> bool:
    """Whether the person at the terminal says no, once told how many jobs of which queues are meant."""
    if not has_terminal():
        return False
    jobs = [scope.question(scope.store.now() - hours * _HOUR if hours else None) for scope in scopes]
    return any(jobs) and is_declined(f"{verb} {' and '.join(filter(None, jobs))}?", otherwise)


def _prune(where: Where, hours: int, force: bool) -> int:
    with _scopes(where) as scopes:
        if not force and _is_declined("Drop", scopes, _NOTHING_DROPPED, hours):
            return FAILED
        for scope in scopes:
            dropped = _drop_older(scope, scope.store.now() - hours * _HOUR)
            output.say(f"dropped {output.counted(dropped, 'failed job')}{scope.words}")
    return 0


def _drop_older(scope: Scope, before: float) -> int:
    keys, kept = scope.older_than(before, 0)
    dropped = 0
    while keys:
        dropped += _drop(scope, keys)
        keys, kept = scope.older_than(before, kept)
    return dropped


def _drop(scope: Scope, keys: Sequence[RecordKey]) -> int:
    batches = (keys[first : first + BATCH] for first in range(0, len(keys), BATCH))
    return sum(scope.store.drop(batch, scope.locks.set_aside) for batch in batches)


def _retry_all(scope: Scope) -> int:
    """Retry only what had failed at the start: workers may fail jobs again faster than this loop runs.

    Returns the exit code.
    """
    began, found, queues = scope.store.now(), Counter[Returned](), Counter[str]()
    while page := scope.store.page(found.total() - found[Returned.DONE], BATCH):
        for record in page:
            is_meant = record.failed_at <= began and scope.has(record)
            result = _put_back(scope, record) if is_meant else Returned.GONE
            found[result] += 1
            queues[record.queue] += bool(result)
    if held := found[Returned.HELD]:
        output.complain(f"{output.counted(held, 'failed job')} left: other jobs hold their unique locks")
    words = f"{output.counted(found[Returned.DONE], 'job')} put back on connection {scope.name}"
    output.say(f"{words}{by_queue(queues)}")
    return FAILED if held else 0


def _retry_some(scopes: Sequence[Scope], ids: Sequence[str]) -> int:
    wanted = dict.fromkeys(ids)
    found = [_retry(scope, record) for scope, record in _several(scopes, wanted)]
    output.say(f"{output.counted(sum(found), 'job')} put back")
    return 0 if sum(found) == len(wanted) else FAILED


def _retry(scope: Scope, record: FailedJob) -> bool:
    match _put_back(scope, record):
        case Returned.DONE:
            return True
        case Returned.HELD:
            output.complain(f"failed job {record.id} stays: another job holds its unique lock")
        case Returned.GONE:
            _not_found(record.id)
    return False


def _several(scopes: Sequence[Scope], ids: Iterable[str]) -> Iterator[tuple[Scope, FailedJob]]:
    """Each of these failed jobs, and where it is; those that are not found are reported."""
    for job_id in ids:
        places = ((scope, scope.get(job_id)) for scope in scopes)
        scope, record = next(((scope, record) for scope, record in places if record), (None, None))
        if scope and record:
            yield scope, record
        else:
            _not_found(job_id)


def _put_back(scope: Scope, record: FailedJob) -> Returned:
    stores, record = scope.queue.stores, replace(record, payload=wanted_again(record.payload))
    back = partial(stores.failed.retry, record, None, retried(record, stores.values.state))
    return scope.locks.put_back(stores, record.payload.encode(), back, ended=True)


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
        output.document(output.versioned(facts | {"class": record.name}))
        return
    trace = facts.pop("exception")
    for name, value in facts.items():
        output.say(f"{name}: {'-' if value is None else value}")
    output.say("exception:")
    output.show(trace)
