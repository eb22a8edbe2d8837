"""The schedules of the configuration: when they are due, pushed by hand, paused."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, redirect_stdout
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice

import click

from queuepool.board.about import operator
from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, JSON, TEXT, Where, located, option, parsed
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.config.timetable import due_after
from queuepool.errors import BootFailure
from queuepool.jobs.client import Queue
from queuepool.operating.schedule_runs import in_force, known_schedules, push_now
from queuepool.pool.announce import job_schedules
from queuepool.steward.schedule import ScheduledJob, declared
from queuepool.unix.exit_codes import FAILED
from queuepool.worker.boot import import_application

_MODULES = "pool.modules"
_REMEDY = "add a [schedule:NAME], or name the modules of such jobs"
_NAME = click.argument("name", type=TEXT)
_NAMES = click.argument("names", metavar="[NAME]...", nargs=-1, type=TEXT)


@click.group(cls=Verbs)
def schedule() -> None:
    """List schedules, show how their last runs ended, push or pause them"""


@schedule.command("list")
@located(*CONNECTION, _MODULES)
@JSON
def list_them(where: Where, as_json: bool) -> None:
    """List the schedules: job, last push, next due time

    Shows those of the configuration and those that jobs declare. The latter come from the pool that runs here; if none
    does, or with --modules, the modules are imported.
    """
    rows = [
        one.row()
        for connection, several in _by_connection(where)
        for one in known_schedules(where, connection, several, output.complain)
    ]
    output.listing(rows, as_json, spare=("next_utc", "queue", "job", "when"))


@schedule.command()
@located(*CONNECTION, _MODULES)
@_NAME
@JSON
def show(where: Where, name: str, as_json: bool) -> None:
    """Show a schedule: its last run and how that ended, what it has missed and why, and what stands in its way

    The outcome of a run is kept for three intervals of the schedule, from a minute to 35 days, unless its job says for
    how long. A due time that was missed is shown as long as it is among the last 20.
    """
    [(connection, several)] = _by_connection(where, [name])
    [found] = known_schedules(where, connection, several, output.complain)
    facts = found.facts()
    if as_json:
        output.document(output.versioned(facts))
        return
    missed = facts.pop("missed")
    for key, value in facts.items():
        if value not in (None, ""):
            output.say(f"{key}: {value}")
    for one in missed:
        times = one["last"] if one["first"] == one["last"] else f"{one['first']} to {one['last']}"
        output.say(f"missed: {times}: {one['reason']}")
    for words in found.words():
        output.say(f"note: {words}")


@schedule.command("next")
@located(*CONNECTION, _MODULES)
@_NAME
@option("--count", metavar="COUNT", type=parsed(values.count), default=10, help="How many times  [default: 10]")
@JSON
def show_next(where: Where, name: str, count: int, as_json: bool) -> None:
    """Show the next due times of a schedule, in its time zone and in UTC"""
    timetable = ScheduledJob(_named(where, [name])[0]).timetable
    times = [
        (timetable.local(at), datetime.fromtimestamp(at, UTC))
        for at in islice(due_after(timetable, time.time()), count)
    ]
    output.listing(({"due": local.isoformat(), "utc": utc.isoformat()} for local, utc in times), as_json)


@schedule.command()
@located(*CONNECTION, _MODULES)
@_NAME
def run(where: Where, name: str) -> int:
    """Push the job of a schedule now and print its id

    Its due times stay as they are. With overlap = no, nothing is pushed while its last job is queued or running.
    """
    [settings] = _named(where, [name])
    with closing(Queue(settings.connection)) as queue:
        job_id, lock = push_now(queue, settings)
        if lock:
            free = f"if it is gone: queuepool locks free '{lock}'"
            output.complain(f"{name}: its last job is still queued or running, and overlap is no; {free}")
            return FAILED
        note(queue.stores, "schedule run", f"schedule {name}, job {job_id}")
    output.say(job_id)
    return 0


@schedule.command()
@located(*CONNECTION, _MODULES)
@_NAMES
def pause(where: Where, names: Sequence[str]) -> None:
    """Pause schedules on all hosts, by default all"""
    _refuse_a_part(where, names)
    for connection, several in _by_connection(where, names):
        with closing(Queue(connection, by_hand=True)) as queue:
            for name in [one.name for one in several] if names else [""]:
                queue.stores.control.pause_schedule(name, queue.stores.queue.now(), operator())
                output.say(f"{_words(name, connection)}: paused on all hosts")
                note(queue.stores, "schedule pause", _words(name, connection))


@schedule.command()
@located(*CONNECTION, _MODULES)
@_NAMES
def resume(where: Where, names: Sequence[str]) -> None:
    """Continue schedules after a pause

    A due time that was missed meanwhile is made up for, unless it is older than late.
    """
    _refuse_a_part(where, names)
    for connection, several in _by_connection(where, names):
        with closing(Queue(connection, by_hand=True)) as queue:
            for name in [one.name for one in several] if names else [""]:
                _resume(queue, name, _words(name, connection), [one.name for one in several])


@schedule.command()
@located(*CONNECTION)
@_NAME
def forget(where: Where, name: str) -> int:
    """Drop what the store knows of a schedule, even of one that is gone

    The schedule starts afresh: earlier due times are ignored. Use this if the store's clock was far ahead.
    """
    dropped = 0
    for connection in where.connections():
        with closing(Queue(connection, by_hand=True)) as queue:
            if queue.stores.values.forget(name):
                dropped += 1
                note(queue.stores, "schedule forget", f"schedule {name}")
    if dropped:
        output.say(f"schedule {name}: forgotten")
        return 0
    output.complain(f"the store knows no schedule {name}")
    return FAILED


def _refuse_a_part(where: Where, names: Sequence[str]) -> None:
    """Raise ``UsageError`` if ``--pool`` chooses one of several pools: without names, all of a connection are meant."""
    if not names:
        where.whole_connections("without a NAME it concerns", otherwise="name the schedules, or leave out --pool")


def _by_connection(
    where: Where, names: Sequence[str] = ()
) -> Iterator[tuple[ConnectionSettings, list[ScheduleSettings]]]:
    """The schedules, or those with these names, by connection. Raises ``UsageError`` if there are none."""
    several = _named(where, names)
    for connection in dict.fromkeys(one.connection for one in several):
        yield connection, [one for one in several if one.connection == connection]


def _named(where: Where, names: Sequence[str]) -> list[ScheduleSettings]:
    known = {one.name: one for pool in where.pools() for one in pool.schedules}
    if not names or set(names) - known.keys():
        known = _with_declared(where, known)
    if not known:
        place = where.path or "the configuration"
        raise click.UsageError(f"there are no schedules in {place}, and no job of its modules has one: {_REMEDY}")
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"only: {', '.join(known)}"
            raise click.UsageError(f"there is no schedule {name!r}; {hint}")
    return [known[name] for name in names or known]


def _with_declared(where: Where, known: dict[str, ScheduleSettings]) -> dict[str, ScheduleSettings]:
    """These and those that jobs declare. If the modules fail to load, only ``known`` ones, if any, with a note."""
    try:
        return known | {
            one.name: one for one in declared_schedules(where.pools(), import_all=_MODULES in where.overrides)
        }
    except BootFailure as failure:
        if not known or isinstance(failure.__cause__, KeyboardInterrupt):
            raise
        output.complain(f"schedules of jobs are left out: {failure}")
        return known


def _resume(queue: Queue, name: str, words: str, several: Sequence[str]) -> None:
    if not queue.stores.control.resume_schedule(name):
        output.complain(f"{words}: was not paused")
        return
    still = queue.stores.control.read((), several).schedules
    reason = "" if not still else "; still paused: " + ", ".join(sorted(still))
    output.say(f"{words}: continues{reason}")
    note(queue.stores, "schedule resume", words)


def _words(name: str, connection: ConnectionSettings) -> str:
    return f"schedule {name}" if name else f"all schedules, connection {connection.name}"


def declared_schedules(pools: Sequence[PoolSettings], *, import_all: bool) -> Iterator[ScheduleSettings]:
    """The schedules of the pools' jobs: published by pools that run, else from their modules. Raises ``BootFailure``.

    ``import_all``: import the modules of pools that run, too.
    """
    at_rest = []
    for pool in pools:
        found = None if import_all else in_force(pool)
        if found is None:
            at_rest.append(pool)
        else:
            yield from declared(pool, found)
    with redirect_stdout(sys.stderr):  # what modules print is not part of the answer
        import_application(dict.fromkeys(name for pool in at_rest for name in pool.modules))
    for pool in at_rest:
        yield from declared(pool, job_schedules())
