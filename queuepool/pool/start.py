"""Start a pool: its directory, its board, its master; or several pools of one file side by side."""

from __future__ import annotations

import faulthandler
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

from queuepool import __version__, log
from queuepool.board.board import Board, Role, sweep
from queuepool.board.meters import MeterMemory
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.config.connections import check_drivers
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.urls import database_of
from queuepool.errors import ConfigError, QueuepoolError
from queuepool.master.loop import Master
from queuepool.master.service_manager import Herald, NotifySocket
from queuepool.pool import announce
from queuepool.pool.examine import (
    make_missing_files,
    refuse_missing_loop,
    refuse_unbindable,
    refuse_unfit,
    refuse_unsendable,
)
from queuepool.pool.parent import Parent
from queuepool.pool.processes import Processes
from queuepool.stores.factory import Stores, is_redis, load_drivers
from queuepool.unix import collector, proc, signals
from queuepool.unix.places import lasting

_SPARE_SLOTS = 14
#: the steward, and the template or one more worker while one is replaced
_HELPERS = 2
#: what the processes of every pool import late
_LATE_MODULES = (
    "jobs.decorator", "jobs.dispatch", "jobs.job_class", "jobs.pusher", "jobs.transactions",
    "payload.php_unserialize", "settlement.held_locks", "steward.schedule", "unix.posix_timer",
)  # fmt: skip
_log = logging.getLogger("queuepool")


def start(settings: PoolSettings, served: Collection[str] = ()) -> int:
    """Run this pool until it stops; returns its exit code. Raises ``PoolRunning``, ``ConfigError``, ``StoreUnfit``.

    ``served``: the queues of all pools of the configuration.
    """
    settings = replace(settings, log=lasting(settings.log) if settings.log else None)
    check_drivers(settings.connection)
    refuse_missing_loop(settings)
    made = make_missing_files(settings.connection)
    refuse_unfit(settings.connection, settings.queues[0])
    refuse_unsendable(settings.schedules)
    signals.reset_inherited(blocked=signals.HANDLED)  # from here on a signal waits for the master, and does not end it
    log.setup(settings, "master", write_timeout=0.0, first=True)
    notify_socket = NotifySocket.taken_from(os.environ)
    if notify_socket.watchdog:
        faulthandler.enable(file=2)  # a watchdog ends us by SIGABRT: this shows where we hung
    runtime = RuntimeDir(settings)
    runtime.claim()
    board = _new_board(runtime, settings)
    roles = Processes(settings, board, runtime, served)
    if not proc.adopt_orphans() and settings.preload:
        raise ConfigError("preload", "this system cannot reparent orphans (Linux can): say no")
    bounds = "{}..{}".format(*settings.bounds) if settings.scales else ""
    announce.beginning(__version__, settings, workers=settings.workers, bounds=bounds, directory=runtime.path)
    announce.made(made)
    if settings.connection.embedded:
        _log.info("no url names a server: the queue is %s", database_of(settings.connection.url))
    load_all(settings)
    proc.library()
    collector.expect_jobs()
    entry_points = {Role.WORKER: roles.worker, Role.STEWARD: roles.steward, Role.TEMPLATE: roles.template}
    if settings.listen:
        entry_points[Role.WEB] = roles.web
    code = Master(settings, board, runtime, entry_points, Herald(notify_socket)).run()
    _log.info("stopped: every process of the pool has ended, exit code %d", code)
    return code


def start_all(
    pools: Sequence[PoolSettings], report: Callable[[QueuepoolError, str], int], served: Collection[str] = ()
) -> int:
    """Run each pool under its own master and forward every signal; returns the worst exit code.

    ``report`` reports why one of several pools could not start, and which one, and returns its exit code. A single
    pool's error is raised.
    """
    if len(pools) == 1:
        return start(pools[0], served)
    signals.reset_inherited(blocked=signals.HANDLED)
    herald = Herald(NotifySocket.taken_from(os.environ))
    pools = [_lasting(replace(pool, has_neighbours=True)) for pool in pools]
    for pool in pools:
        with suppress(QueuepoolError, ImportError):  # its own start reports it
            check_drivers(pool.connection)
            load_all(pool)
    return Parent(pools, herald).run(lambda pool: _start_or_report(pool, report, served))


def _lasting(pool: PoolSettings) -> PoolSettings:
    """The settings with absolute paths, which a later master finds even if the working directory is gone."""
    directory = lasting(pool.runtime_dir) if pool.runtime_dir else None
    return replace(pool, log=lasting(pool.log) if pool.log else None, runtime_dir=directory)


def _start_or_report(pool: PoolSettings, report: Callable[[QueuepoolError, str], int], served: Collection[str]) -> int:
    try:
        return start(pool, served)
    except QueuepoolError as error:
        return report(error, pool.name)


def _new_board(runtime: RuntimeDir, settings: PoolSettings) -> Board:
    """Two slots per worker, since a rolling restart may run two; disk space is allocated for the usual processes."""
    workers = settings.bounds[1]
    lanes = 2 * settings.concurrency if settings.concurrency > 1 else 0
    sweep(runtime.path)
    try:
        refuse_unbindable(settings)  # not before the claim: the address may be taken by this very pool
        board = runtime.new_board(
            max(64, 2 * workers + _SPARE_SLOTS), room_for=settings.workers + _HELPERS, lanes=lanes
        )
    except QueuepoolError:
        runtime.release()
        raise
    queues = len(settings.queues) if settings.metrics else 0  # by queue only if they are published
    board.meters = MeterMemory.new(len(board.slots), queues, is_published=settings.metrics)
    board.header.facts = board.header.facts._replace(since=time.time(), target=settings.workers)
    board.header.beat = time.monotonic()
    return board


def load_all(settings: PoolSettings) -> None:
    """Import what a pool's processes import late, before the first fork, and read the stores' scripts. Opens nothing.

    They share its memory, and may outlive its files: old releases are pruned under running pools, and a steward or a
    worker that is replaced after that must not need one more file of ours.
    """
    Stores(settings.connection)  # which imports its parts
    load_drivers(settings.connection)
    for name in (*_LATE_MODULES, *_of_settings(settings), *_of_stores(settings.connection)):
        import_module(f"queuepool.{name}")
    if settings.loop != "asyncio":
        import_module(settings.loop)


def _of_settings(settings: PoolSettings) -> Iterator[str]:
    if settings.alerts:
        yield "alerts.watch"
    if settings.scales:
        yield "steward.scale"
    if settings.listen:
        yield "pool.web_process"
    if settings.connection.app_keys:
        yield "payload.aes"
    if settings.concurrency > 1:
        yield "worker.lane_worker"


def _of_stores(connection: ConnectionSettings) -> Iterator[str]:
    if not is_redis(connection.batches_url or connection.failed_url or connection.url):
        yield "stores.sql.batches"
