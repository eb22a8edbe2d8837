"""Look for what would fail later: the configuration, the server, our rights on it, the modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, redirect_stdout
from functools import partial

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.check_parts import inspect_address, inspect_logs, inspect_programs, inspect_rights, inspect_schedules
from queuepool.cli.options import CONNECTION, JSON, Where, located, option, parsed
from queuepool.cli.peek import Peek
from queuepool.cli.queues import age, untaken
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.urls import kind_of
from queuepool.errors import BootFailure, ConfigError, StoreError
from queuepool.jobs.registry import DEFAULT, NO_MODULES, REGISTRY, unserved
from queuepool.steward.orphaned_boards import left_by_others, words_for
from queuepool.stores.factory import Stores, is_redis
from queuepool.stores.finding import Finding, Grade
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
        yield from inspect_rights(stores, _pools(where, connection))


def _inspector(where: Where, connection: ConnectionSettings) -> Inspector:
    """The inspector of this kind of store, whose library may not be installed if it is not used."""
    if kind_of(connection.url) == "redis":
        from queuepool.stores.redis.check import inspect_server

        return inspect_server
    from queuepool.stores.sql.check import inspect_database

    return partial(inspect_database, crews=[pool.workers for pool in _pools(where, connection)])


def _queues(where: Where, connection: ConnectionSettings) -> list[str]:
    """The queues that are served on this connection, each once."""
    return list(dict.fromkeys(queue for pool in _pools(where, connection) for queue in pool.queues))


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


def _boards(where: Where) -> Iterator[Finding]:
    for pool in where.pools():
        try:
            left = left_by_others(RuntimeDir(pool))
        except ConfigError as error:  # a lone worker needs no such directory
            yield Finding(Grade.WARN, f"pool {pool.name}", str(error))
        else:
            yield from (Finding(Grade.WARN, f"pool {pool.name}", words_for(name)) for name in left)
            if (about := RuntimeDir(pool).about()) and about.gone:
                yield Finding(
                    Grade.WARN, f"pool {pool.name}", f"what it was started from has been removed: {about.gone}"
                )


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
    jobs = REGISTRY.names()
    yield Finding(Grade.OK, "modules", f"{', '.join(names)}; jobs: {', '.join(jobs)}")
    yield from (Finding(Grade.WARN, "queues", words) for words in _unserved(where))
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
