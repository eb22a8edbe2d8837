"""Look for what would fail later: the configuration, the server, our rights on it, the modules, schedules and files."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stdout
from functools import partial
from pathlib import Path

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.options import CONNECTION, JSON, Where, located, option, parsed
from queuepool.cli.peek import Peek
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.timetable import Cron
from queuepool.config.urls import kind_of
from queuepool.config.values import address_of
from queuepool.errors import (
    BadArguments,
    BadPayload,
    BootFailure,
    ConfigError,
    NotRunning,
    StoreError,
    StoreFull,
    UnknownJob,
)
from queuepool.jobs.arguments import reader_of
from queuepool.jobs.registry import (
    DEFAULT,
    NO_MODULES,
    REGISTRY,
    Handler,
    Registry,
    bound,
    in_threads,
    unregistered,
    unserved,
)
from queuepool.metrics.server import problem_of
from queuepool.operating.queues import age, untaken
from queuepool.payload.command import Commands
from queuepool.payload.envelope import decode
from queuepool.pool.announce import job_schedules
from queuepool.pool.examine import problem_of_limits, problem_of_loop
from queuepool.steward.orphaned_boards import left_by_others, words_for
from queuepool.steward.schedule import ScheduledJob, declared
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.finding import Finding, Grade, refusal
from queuepool.unix import proc
from queuepool.unix.exit_codes import CONFIG, FAILED
from queuepool.worker.boot import import_jobs, other_threads

#: most jobs that `--peek` reads from a queue
_MOST_PEEKED = 10_000
#: inspects one connection and the queues that are served there
Inspector = Callable[[Stores, Sequence[str]], Iterator[Finding]]


def _peeked(raw: str) -> int:
    """How many jobs to read from each queue: the store sends them all at once, and they are held in memory."""
    count = values.count(raw)
    if count > _MOST_PEEKED:
        raise ValueError(f"{values.shown(raw)} is more than {_MOST_PEEKED}, the most that can be read from a queue")
    return count


@click.command()
@located(*CONNECTION, "pool.modules")
@option(
    "--peek",
    metavar="COUNT",
    type=parsed(_peeked),
    default=0,
    help="Read this many waiting jobs of each queue (at most 10000) and name the Laravel features that they use",
)
@JSON
def check(where: Where, peek: int, as_json: bool) -> int:
    """Check configuration, server, permissions and modules"""
    try:
        where.load()
    except ConfigError as error:
        _print([Finding(Grade.FAIL, "configuration", line) for line in str(error).split("\n")], as_json)
        return CONFIG
    findings = [_configuration(where), *_stores(where), *_boards(where), *_addresses(where)]
    findings += [
        Finding(Grade.FAIL, f"pool {pool.name} loop", no) for pool in where.pools() if (no := problem_of_loop(pool))
    ]
    findings += [*inspect_logs(where.pools()), *inspect_programs(where.pools()), *_modules(where), *_schedules(where)]
    if peek:
        findings += _waiting(where, peek)
    _print(findings, as_json)
    return FAILED if any(finding.grade is Grade.FAIL for finding in findings) else 0


def _print(findings: Sequence[Finding], as_json: bool) -> None:
    if as_json:
        output.documents({"grade": one.grade.value, "what": one.what, "words": one.words} for one in findings)
        return
    for one in findings:
        output.say(f"{one.grade.value:<4} {one.what}: {one.words}")


def _configuration(where: Where) -> Finding:
    pools = where.pools()
    names = ", ".join(pool.name for pool in pools)
    return Finding(Grade.OK, "configuration", f"{where.load().name or 'no file'}, pools: {names}")


def _stores(where: Where) -> Iterator[Finding]:
    for connection in where.connections():
        yield Finding(Grade.OK, f"connection {connection.name}", _signing(connection))
        with closing(Stores(connection, shared=True, by_hand=True)) as stores:
            try:
                yield from _store(where, connection, stores)
                yield from _failed_store(connection)
                yield from _outcomes(stores)
                yield from _flow_reports(where, connection)
            except StoreError as error:
                yield Finding(Grade.FAIL, f"connection {connection.name}", str(error))


def _signing(connection: ConnectionSettings) -> str:
    """The names of the keys, never the keys."""
    if connection.signing == "off":
        return "payloads are not signed"
    first, *others = (name for name, _ in connection.signing_keys)
    also = f" (also verified: {', '.join(others)})" if others else ""
    unsigned = "refused" if connection.signing == "require" else "accepted"
    return f"payloads are signed with {first}{also}, unsigned ones are {unsigned}"


def _store(where: Where, connection: ConnectionSettings, stores: Stores) -> Iterator[Finding]:
    is_sound = True
    for finding in _inspector(where, connection)(stores, _queues(where, connection)):
        is_sound = is_sound and finding.grade != Grade.FAIL
        yield finding
    if is_sound or is_redis(connection.url):  # else a database would report the same tables again
        try:
            yield from inspect_rights(stores, _pools(where, connection))
        except StoreFull:
            if is_sound:  # else the inspector has said so
                raise


def _inspector(where: Where, connection: ConnectionSettings) -> Inspector:
    """The inspector of this kind of store, whose library may not be installed if it is not used."""
    pools = _pools(where, connection)
    if kind_of(connection.url) == "redis":
        from queuepool.stores.redis.check import inspect_server

        horizons = {pool.name: pool.horizon for pool in pools if pool.horizon}
        return partial(inspect_server, kept=_queues_of([pool for pool in pools if pool.keep_done]), horizons=horizons)
    from queuepool.stores.sql.check import inspect_database

    return partial(inspect_database, crews=[pool.bounds[1] for pool in pools])


def _queues(where: Where, connection: ConnectionSettings) -> list[str]:
    """The queues that are served on this connection, each once."""
    return _queues_of(_pools(where, connection))


def _queues_of(pools: Sequence[PoolSettings]) -> list[str]:
    return list(dict.fromkeys(queue for pool in pools for queue in pool.queues))


def _pools(where: Where, connection: ConnectionSettings) -> list[PoolSettings]:
    return [pool for pool in where.pools() if pool.connection == connection]


def _failed_store(connection: ConnectionSettings) -> Iterator[Finding]:
    """What a separate failed store cannot hold, if it is in a database."""
    if connection.failed_url not in ("", connection.url) and not is_redis(connection.failed_url):
        from queuepool.stores.sql.check import inspect_failed_store  # imported here: few have one

        yield from inspect_failed_store(connection)


def _outcomes(stores: Stores) -> Iterator[Finding]:
    """What waits for a worker of Laravel."""
    if not (queue := stores.settings.outcomes):
        return
    found, total = stores.queue.measure(queue), stores.queue.sizes(queue).total
    oldest = age(found)
    words = f"{total} waiting for Laravel" + ("" if oldest is None else f", the oldest for {oldest:g} s")
    yield Finding(Grade.OK, f"outcomes {queue}", words)
    if words := untaken(queue, found):
        yield Finding(Grade.WARN, f"outcomes {queue}", words)


def _flow_reports(where: Where, connection: ConnectionSettings) -> Iterator[Finding]:
    """Whether the ends of members in PHP reach a pool."""
    if (queue := connection.flow_reports) and queue not in _queues(where, connection):
        yield Finding(Grade.WARN, f"flow_reports {queue}", "no pool here serves it: if none does, flows wait for PHP")


def _boards(where: Where) -> Iterator[Finding]:
    for pool in where.pools():
        try:
            left = left_by_others(RuntimeDir(pool))
        except ConfigError as error:  # a lone worker needs no such directory
            yield Finding(Grade.WARN, f"pool {pool.name}", str(error))
        else:
            yield from (Finding(Grade.WARN, f"pool {pool.name}", words_for(name)) for name in left)
            if (about := RuntimeDir(pool).about()) and about.gone:
                words = f"what it was started from has been removed: {about.gone}"
                yield Finding(Grade.WARN, f"pool {pool.name}", words)


def _addresses(where: Where) -> Iterator[Finding]:
    for pool in where.pools():
        if pool.listen:
            yield from inspect_address(pool)


def _modules(where: Where) -> Iterator[Finding]:
    names = list(dict.fromkeys(name for pool in where.pools() for name in (*pool.modules, *pool.listeners)))
    modules = {name for pool in where.pools() for name in pool.modules}
    if not names:
        yield Finding(Grade.WARN, "modules", f"{NO_MODULES}; a pool does not start without any")
        return
    before = other_threads()
    try:
        with redirect_stdout(sys.stderr):  # what modules print is not a finding
            import_jobs([name for name in names if name in modules], names)
    except BootFailure as failure:
        if isinstance(failure.__cause__, KeyboardInterrupt):
            raise
        yield Finding(Grade.FAIL, "modules", str(failure))
        return
    if any(pool.preload for pool in where.pools()) and (started := other_threads() - before) > 0:
        yield Finding(Grade.WARN, "preload", f"importing the modules starts threads={started}: no worker has them")
    yield Finding(Grade.OK, "modules", f"{', '.join(names)}; jobs: {', '.join(REGISTRY.names())}")
    yield from (Finding(Grade.WARN, "queues", words) for words in _unserved(where))
    yield from (Finding(Grade.FAIL, f"pool {one.name}", no) for one in where.pools() if (no := problem_of_limits(one)))
    for pool in where.pools():
        if pool.concurrency > 1:
            yield from (Finding(Grade.WARN, f"pool {pool.name} concurrency", words) for words in in_threads(REGISTRY))
    yield from _sizes(where)


def _unserved(where: Where) -> list[str]:
    """Queues that no pool serves; the advice is to add them to the pool that serves ``default``, or to the first."""
    pools = where.load().pools
    pool = next((pool for pool in pools if DEFAULT in pool.queues), pools[0])
    place = f" in [pool:{pool.name}]" if len(pools) > 1 else ""
    return unserved(REGISTRY, {queue for pool in pools for queue in pool.queues}, pool.queues, place)


def _sizes(where: Where) -> Iterator[Finding]:
    """Memory limits that are too small: a worker is about as large as this process is now."""
    booted = proc.resident_mb(os.getpid())
    for pool in where.pools():
        if pool.memory.is_too_small(booted):
            limit, size = f"{pool.memory.megabytes:g} MB", f"about {booted:.0f} MB once its modules are imported"
            words = f"{limit}, but a worker takes {size}: raise it, or set memory = +64"
            yield Finding(Grade.FAIL, f"pool {pool.name} memory", words)


def _schedules(where: Where) -> Iterator[Finding]:
    """After the modules are imported."""
    if REGISTRY.scheduled() or any(pool.schedules for pool in where.pools()):
        yield from inspect_schedules(where.pools(), REGISTRY)


def _waiting(where: Where, most: int) -> Iterator[Finding]:
    """The first jobs of each queue, after the modules are imported."""
    for connection in where.connections():
        with closing(Stores(connection, shared=True, by_hand=True)) as stores:
            peek = Peek(stores, REGISTRY)
            try:
                for queue in _queues(where, connection):
                    yield from peek.findings(queue, most)
            except StoreError as error:
                yield Finding(Grade.FAIL, f"connection {connection.name}", str(error))


#: seconds by which a mark may be ahead of the store's clock
_AHEAD = 60.0
#: seconds after which a key that could not be released expires
_KEY_LIFETIME = 2.0
#: lifetime in seconds of a text that has expired when it is written
_EXPIRED = -60.0
#: what is tried: its name, and the call
_Attempt = tuple[str, Callable[[], object]]


def inspect_address(pool: PoolSettings) -> Iterator[Finding]:
    """Whether the pool can listen on the address of its ``listen``, and who can connect there."""
    what, address = f"listen {pool.listen}", address_of(pool.listen)
    if _is_running(pool):
        yield Finding(Grade.OK, what, "the pool listens there")
    elif problem := problem_of(address):
        yield Finding(Grade.FAIL, what, problem)
    else:
        yield Finding(Grade.OK, what, "it is free")
    if not address.is_private:
        yield Finding(Grade.WARN, what, "is open to other hosts, and asks for no password")


def _is_running(pool: PoolSettings) -> bool:
    try:
        return RuntimeDir(pool).board().header.master_pid > 0
    except (NotRunning, ConfigError):
        return False


def inspect_schedules(pools: Sequence[PoolSettings], registry: Registry) -> Iterator[Finding]:
    """The findings about the schedules of these pools; ``registry`` has the jobs of their modules."""
    found = job_schedules()
    for one in dict.fromkeys(one for pool in pools for one in (*pool.schedules, *declared(pool, found))):
        try:
            job = ScheduledJob(one)
        except ConfigError as error:
            yield Finding(Grade.FAIL, f"schedule {one.name}", str(error))
            continue
        following = job.timetable.local(job.timetable.next_after(time.time()))
        yield Finding(Grade.OK, f"schedule {one.name}", f"{one.rule}, next {following.isoformat()}")
        served = {queue for pool in pools if pool.connection == one.connection for queue in pool.queues}
        yield from (Finding(Grade.WARN, f"schedule {one.name}", words) for words in _about(job, served, registry))
        yield from _mark(job)


def _about(job: ScheduledJob, served: set[str], registry: Registry) -> Iterator[str]:
    one = job.settings
    if one.queue not in served:
        yield f"no pool of this configuration serves its queue {one.queue}"
    try:
        handler = registry.find(one.pushes)
    except UnknownJob:
        # In a queue that is not ours, it may be for Laravel's workers.
        if one.queue in served or not {"@", "\\"} & set(one.pushes):
            yield from (words for _, words in unregistered(registry, {one.name: one.pushes}))
    else:
        yield from _of_handler(job, handler)
    if isinstance(job.timetable, Cron):
        yield from (f"{local.isoformat()} {words}" for local, words in job.timetable.changes(time.time()))


def _of_handler(job: ScheduledJob, handler: Handler) -> Iterator[str]:
    one = job.settings
    if handler.options.queue not in (None, "default", one.queue):
        yield f"its job names queue {handler.options.queue}, but the schedule pushes it to {one.queue}: set queue = ..."
    try:
        payload = decode(job.due(0, 0.0).payload)
        bound(handler, Commands().data_of(payload), reader_of(handler.name, handler.target))
    except (BadPayload, BadArguments) as error:
        yield f"data: {error}"


def _mark(job: ScheduledJob) -> Iterator[Finding]:
    with closing(Stores(job.settings.connection, shared=True, by_hand=True)) as stores:
        try:
            mark, now = stores.values.marks().get(job.settings.name), stores.queue.now()
        except StoreError as error:
            yield Finding(Grade.FAIL, f"schedule {job.settings.name}", str(error))
            return
    if mark and mark.settled > now + _AHEAD:
        until = job.timetable.local(mark.settled).isoformat()
        remedy = f"to end this: queuepool schedule forget {job.settings.name}"
        words = f"nothing is pushed before {until}: the clock was ahead; {remedy}"
        yield Finding(Grade.WARN, f"schedule {job.settings.name}", words)


def inspect_rights(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the store permits what these pools, all of one connection, do beside their jobs."""
    for name, ask in _attempts(stores, pools):
        if words := refusal(ask):
            yield Finding(Grade.FAIL, f"connection {stores.settings.name}", f"{name} is refused: {words}")


def inspect_programs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether the program of ``[alerts] exec`` can be run by this user."""
    for name in dict.fromkeys(pool.alerts.program[0] for pool in pools if pool.alerts and pool.alerts.program):
        problem = _problem_of(Path(name))
        yield Finding(Grade.FAIL if problem else Grade.OK, f"alerts exec {name}", problem or "it can be run")


def inspect_logs(pools: Sequence[PoolSettings]) -> Iterator[Finding]:
    """Whether this user can write to the pools' log files, which are not created here."""
    for path in dict.fromkeys(pool.log for pool in pools if pool.log):
        place = path if path.exists() else path.parent
        if not place.exists():
            yield Finding(Grade.FAIL, f"log {path}", f"there is no directory {place}")
        elif not os.access(place, os.W_OK):
            yield Finding(Grade.FAIL, f"log {path}", f"{place} cannot be written to by uid {os.geteuid()}")


def _attempts(stores: Stores, pools: Sequence[PoolSettings]) -> Iterator[_Attempt]:
    """What is tried, by name. Writes only under a name of our own, and leaves nothing."""
    own = f"check-{secrets.token_hex(6)}"
    if any(pool.metrics for pool in pools):
        queues = dict.fromkeys(queue for pool in pools for queue in pool.queues)
        yield from ((f"measuring queue {queue}", partial(stores.queue.measure, queue)) for queue in queues)
    if any(pool.metrics and pool.history for pool in pools):
        yield "keeping the history", partial(stores.values.keep_history, "1m", 0, own, "", _EXPIRED)
        yield "clearing the history", stores.values.sweep_history
    if any(pool.alerts for pool in pools):
        yield "reading the pools' notices for alerts", stores.control.pools
        yield "taking the key of an alert", partial(stores.values.claim_alert, own, own, _KEY_LIFETIME)
        yield "releasing the key of an alert", partial(stores.values.release_alert, own, own)


def _problem_of(program: Path) -> str:
    try:
        if not program.exists():
            return "there is no such file"
        if not program.is_file():
            return "is not a file"
    except OSError as error:
        return f"cannot be examined: {error.strerror}"
    return "" if os.access(program, os.X_OK) else f"cannot be run by uid {os.geteuid()}: chmod +x it"
