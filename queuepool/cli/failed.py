"""The failed store: list, retry, drop. Long stores are read in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.finding import BY, COUNT, Question, carry_out, filtered, limited, note_closed, show_facets
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, option, parsed
from queuepool.cli.output import FORCE, has_terminal, is_declined
from queuepool.cli.queues import one_queue
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.operating.job_rows import failed_row
from queuepool.operating.meant import MeantFailed
from queuepool.operating.scopes import BATCH, Scope, by_queue, scope_of
from queuepool.search.bulk import Act, OfFailedJobs
from queuepool.search.facets import Facets
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.stores.pace import StorePace
from queuepool.stores.records import FailedJob, RecordKey, Returned
from queuepool.unix.exit_codes import FAILED

_HOUR = 3600.0
_SOME_IDS = click.argument("ids", metavar="[ID]...", nargs=-1, type=TEXT)
_NOTHING_DROPPED = "nothing was dropped"
_QUEUE = option("--queue", metavar="QUEUE", type=parsed(one_queue), help="Only those that failed on this queue")


@click.command()
@located(*CONNECTION)
@click.argument("job_id", metavar="[ID]", required=False, type=TEXT)
@_QUEUE
@filtered
@limited(0)
@COUNT
@BY
@JSON
def failed(
    where: Where, job_id: str | None, queue: str | None, wanted: Filter, limit: int, is_count: bool, by: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """List failed jobs, or show the one with this ID

    Covers all connections of the configuration; with --pool, only that pool's queues.
    """
    if job_id is not None:
        return _show_one(where, job_id, as_json)
    reading = Reading(where.connections())
    found = reading.each(partial(_all, where, queue, wanted))
    if is_count or by:
        facets = Facets(by or "")
        for job in found:
            facets.add(job)
        show_facets(facets, limit, as_json)
        return reading.code
    _list((_json_row(job) if as_json else _row(job) for job in islice(found, limit or None)), as_json)
    return reading.code


@click.command()
@located(*CONNECTION)
@click.argument("ids", metavar="[ID... | all]", nargs=-1, type=TEXT)
@_QUEUE
@filtered
@option("--to", "target", metavar="QUEUE", type=parsed(one_queue), help="Put them on this queue, not on their own")
@option("--alone", is_flag=True, help="Also jobs whose flow is not kept any more: nothing follows them")
@FORCE
def retry(
    where: Where, ids: Sequence[str], queue: str | None, wanted: Filter, target: str | None, alone: bool, force: bool
) -> int:
    """Put failed jobs back on their queues, with all their tries

    Covers all connections of the configuration; with --pool, only that pool's queues. Before it retries all of them, or
    all that fit, it asks at a terminal. What fails again meanwhile is not retried again.
    """
    is_all = ids == ("all",) or not ids
    if (is_all and not (ids or queue or not wanted.is_empty)) or (not is_all and (queue or not wanted.is_empty)):
        raise click.UsageError("name failed jobs by ID, or give all or --queue or filters")
    with _scopes(where, queue) as scopes:
        if not is_all:
            return _retry_some(scopes, ids, target, alone=alone)
        many = _Many(scopes, wanted)
        if not force and many.is_declined("Put back", "nothing was put back"):
            return FAILED
        code = many.carry_out("retry", lambda acts: partial(acts.retry, queue=target, alone=alone), "put back")
    if target and (remark := where.note_on(target)):
        output.complain(remark)
    return code


@click.command()
@located(*CONNECTION)
@_SOME_IDS
@_QUEUE
@filtered
@FORCE
def forget(where: Where, ids: Sequence[str], queue: str | None, wanted: Filter, force: bool) -> int:
    """Drop failed jobs by ID, or all that fit

    With --pool, only those of that pool's queues. Before it drops several, it asks at a terminal.
    """
    if bool(ids) == (queue is not None or not wanted.is_empty):
        raise click.UsageError("name failed jobs by ID, or give --queue or filters; flush drops all")
    with _scopes(where, queue) as scopes:
        if ids:
            return _forget_some(scopes, dict.fromkeys(ids), force)
        many = _Many(scopes, wanted)
        if not force and many.is_declined("Drop", _NOTHING_DROPPED, must_ask=True):
            return FAILED
        return many.carry_out("forget", lambda acts: acts.forget, "dropped")


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


def _all(where: Where, queue: str | None, wanted: Filter, connection: ConnectionSettings) -> Iterator[FoundJob]:
    with scope_of(where, connection, queue=queue) as scope:
        look = Look(scope.queue.stores, wanted)
        yield from chain.from_iterable(scope.pages(look))
        note_closed(look)
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
    _refuse_a_bare_name(where)
    with ExitStack() as stack:
        yield [stack.enter_context(scope_of(where, one, queue=queue)) for one in where.connections()]


def _refuse_a_bare_name(where: Where) -> None:
    """Without a file, the queues of a pool are unknown, so its name would choose nothing. Raises ``UsageError``."""
    if where.pool_name is not None and not where.is_part:
        why = "without a configuration file it does not say which queues are meant: leave it out"
        raise click.UsageError(f"--pool {where.pool_name}: {why}")


class _Many:
    """The failed jobs that fit, as they were at the beginning: workers may fail jobs faster than they are retried."""

    def __init__(self, scopes: Sequence[Scope], wanted: Filter) -> None:
        self._wanted = wanted
        self._meant = [(scope, MeantFailed(Look(scope.queue.stores, wanted), scope)) for scope in scopes]

    def is_declined(self, verb: str, otherwise: str, *, must_ask: bool = False) -> bool:
        """Whether the person at the terminal says no, once told how many jobs of which queues are meant.

        Without filters it does not ask where there is no terminal, unless it ``must_ask``.
        """
        if self._wanted.is_empty and not must_ask:
            return _is_declined(verb, [scope for scope, _ in self._meant], otherwise)
        question = Question(verb, "failed job", otherwise)
        for scope, meant in self._meant:
            question.count(scope.place, meant.counted())
        return question.is_declined()

    def carry_out(self, verb: str, act_of: Callable[[OfFailedJobs], Act], done: str) -> int:
        """Do it; returns the exit code."""
        return max(
            [
                carry_out(scope.queue.stores, verb, [meant.errand(act_of)], done, f" on connection {scope.name}")
                for scope, meant in self._meant
            ]
        )


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
            if dropped:
                note(scope.queue.stores, "flush", f"failed jobs on connection {scope.name}", dropped)
    return 0


def _drop_older(scope: Scope, before: float) -> int:
    dropped = 0
    if scope.is_whole:
        while keys := scope.store.older_than(before, BATCH):
            dropped += _drop(scope, keys)
        return dropped
    for page in scope.pages(Look(scope.queue.stores, Filter())):
        old = [job.where for job in page if isinstance(job.where, FailedJob) and job.where.failed_at < before]
        dropped += _drop(scope, [record.key for record in old])
    return dropped


def _drop(scope: Scope, keys: Sequence[RecordKey]) -> int:
    batches = (keys[first : first + BATCH] for first in range(0, len(keys), BATCH))
    return sum(answer for batch in batches for answer in scope.store.drop(batch, scope.locks.set_aside))


def _forget_some(scopes: Sequence[Scope], wanted: dict[str, None], force: bool) -> int:
    found = [(scope, record.key, record.queue) for scope, record in _several(scopes, wanted)]
    if len(found) > 1 and not force and has_terminal():
        jobs = f"{output.counted(len(found), 'failed job')}{by_queue(Counter(queue for _, _, queue in found))}"
        if is_declined(f"Drop {jobs}?", _NOTHING_DROPPED):
            return FAILED
    dropped = 0
    for scope in scopes:
        if mine := _drop(scope, [key for other, key, _ in found if other is scope]):
            note(scope.queue.stores, "forget", f"failed jobs on connection {scope.name}", mine)
            dropped += mine
    output.say(f"dropped {output.counted(dropped, 'failed job')}")
    return 0 if dropped == len(wanted) else FAILED


def _retry_some(scopes: Sequence[Scope], ids: Sequence[str], target: str | None, *, alone: bool) -> int:
    wanted = dict.fromkeys(ids)
    pace = StorePace()
    found = _several(scopes, wanted)
    done = Counter(scope for scope, record in found if _retry(scope, record, target, pace, alone=alone))
    for scope, jobs in done.items():
        note(scope.queue.stores, "retry", f"failed jobs on connection {scope.name}", jobs)
    output.say(f"{output.counted(done.total(), 'job')} put back")
    return 0 if done.total() == len(wanted) else FAILED


def _retry(scope: Scope, record: FailedJob, target: str | None, pace: StorePace, *, alone: bool) -> bool:
    match OfFailedJobs(scope.queue.stores, scope.locks, pace).put_back([record], target, alone=alone)[0]:
        case Returned.DONE:
            return True
        case Returned.HELD:
            output.complain(f"failed job {record.id} stays: another job holds its unique lock")
        case Returned.ALONE:
            output.complain(f"failed job {record.id} stays: its flow is not kept any more; --alone runs it alone")
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


def _not_found(job_id: str) -> int:
    output.complain(f"failed job {job_id} not found")
    return FAILED


def _row(job: FoundJob) -> dict[str, Any]:
    assert isinstance(job.where, FailedJob)
    return failed_row(job.where)


def _json_row(job: FoundJob) -> dict[str, Any]:
    """The same, also with our word for what artisan calls the class."""
    row = _row(job)
    return row | {"name": row["class"]}


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
