"""What workers and stewards cost their store: ``scripts/bench --costs [--quick]``."""

from __future__ import annotations

import operator
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from queuepool.config.settings import ConnectionSettings
from tests.bench.rig import PATIENCE, ROOT, Rig, redis_rig, until
from tests.bench.scale import costs_report
from tests.bench.scale.costs_report import Cost
from tests.bench.scale.fill import Filler
from tests.bench.scale.rows import Rows
from tests.bench.scale.steps import Source
from tests.bench.tables import create, execute, kind, sql_rig
from tests.bench.words import QUICK, say
from tests.support.databases import Postgres, running
from tests.support.pgbouncer import pooler

#: pools, and workers of each: one small and one large for the formula, the others to see whether it holds
_ON_REDIS, _ON_POSTGRES = [(1, 4), (1, 64), (1, 16), (4, 4)], [(1, 4), (1, 16), (4, 4)]
#: seconds: before a look, of an idle store, of a busy one; a session of PostgreSQL reports up to ten seconds late
_CALM, _IDLE, _BUSY = (2.0, 8.0, 3.0) if QUICK else (4.0, 30.0, 6.0)
#: seconds in which a worker has learned how long the jobs take, and so how many it takes at once
_LEARN = 1.5
#: jobs a second that a worker does, at most, of those that take ten milliseconds
_RATE = 100
_AT_ONCE, _ASIDE = 5_000, "aside"
#: of the server, that the pooler lends
_SESSIONS = 8
_TRANSACTIONS = "SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"
_CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"


class _Seen(NamedTuple):
    """Of the server so far, at a monotonic moment in seconds; ``requests``: transactions, of a database."""

    at: float
    requests: int
    commands: int
    #: of a processor
    seconds: float
    waiting: int


def main() -> None:
    into = ROOT / ("build" if QUICK else "docs")
    into.mkdir(exist_ok=True)
    measured = dict[str, list[Cost]]()
    for store, world, sizes in (
        (costs_report.REDIS, redis_rig(), _ON_REDIS),
        (costs_report.POSTGRES, sql_rig("postgres"), _ON_POSTGRES),
        (costs_report.POOLED, _behind_a_pooler(), _ON_POSTGRES),
    ):
        with world as rig:
            measured[store] = [_cost(rig, store, *size) for size in sizes]
    about = f"{os.cpu_count()} processors, load {os.getloadavg()[2]:.0f}, {platform.platform()}; idle for {_IDLE:g} s"
    costs_report.write(into / "scale.md", about, measured)


def _cost(rig: Rig, store: str, pools: int, workers: int) -> Cost:
    rig.queue.size()  # our own connections, too; a pooler has none that are ours
    ours = 0 if store == costs_report.POOLED else _connections(rig)
    with ExitStack() as stack:
        for number in range(pools):
            stack.enter_context(rig.pool(workers, "--runtime-dir", str(rig.path / f"run{number}")))
        until(lambda: _idle_workers(rig) >= pools * workers, within=PATIENCE + workers)
        time.sleep(_CALM)
        connections = _connections(rig) - ours
        idle = _between(rig, _IDLE)
        _fill(rig, int(pools * workers * _RATE * (_BUSY + 2 * _LEARN)))
        time.sleep(_LEARN)
        busy = _between(rig, _BUSY)
        _empty(rig)
    jobs = -busy.waiting
    cost = Cost(
        pools,
        pools * workers,
        connections,
        idle.requests / idle.at,
        idle.commands / idle.at,
        100 * idle.seconds / idle.at,
        jobs / busy.at,
        busy.requests / jobs,
        busy.commands / jobs,
        1e6 * busy.seconds / jobs,
    )
    say(f"{store}: {cost}")
    return cost


def _idle_workers(rig: Rig) -> int:
    return sum(" idle " in " ".join(one.cmdline()) for one in rig.family())


def _between(rig: Rig, seconds: float) -> _Seen:
    """What the server did in this time, with our own looks, which are a few."""
    before = _seen(rig)
    time.sleep(seconds)
    return _Seen(*map(operator.sub, _seen(rig), before))


def _seen(rig: Rig) -> _Seen:
    waiting = rig.queue.sizes().ready
    if kind(rig) == "postgresql":
        [(transactions,)] = execute(rig, _TRANSACTIONS)
        return _Seen(time.monotonic(), int(transactions), 0, _seconds_of_postgres(rig), waiting)
    stats, cpu = (rig.stores.client.command("INFO", section) for section in ("stats", "cpu"))
    seconds = float(cpu["used_cpu_sys"]) + float(cpu["used_cpu_user"])
    requests, commands = int(stats["total_reads_processed"]), int(stats["total_commands_processed"])
    return _Seen(time.monotonic(), requests, commands, seconds, waiting)


def _connections(rig: Rig) -> int:
    if kind(rig) == "postgresql":
        return int(execute(rig, _CLIENTS)[0][0])
    return int(rig.stores.client.command("INFO", "clients")["connected_clients"])


def _seconds_of_postgres(rig: Rig) -> float:
    """Of all its processes, also of those that have ended."""
    [(session,)] = execute(rig, "SELECT pg_backend_pid()")
    server = psutil.Process(int(session)).parent()
    assert server
    return sum(server.cpu_times()[:4]) + sum(sum(child.cpu_times()[:2]) for child in server.children())


def _fill(rig: Rig, jobs: int) -> None:
    """On Redis all at once: on a crowded machine so many workers would do them as fast as they are pushed.

    In a database a move would leave as many dead rows.
    """
    queue = "default" if kind(rig) == "postgresql" else _ASIDE
    for first in range(0, jobs, _AT_ONCE):
        rig.queue.bulk([("nap", {"n": number}) for number in range(first, min(jobs, first + _AT_ONCE))], queue=queue)
    if queue == _ASIDE:
        Filler(rig).move(_ASIDE, "default")


def _empty(rig: Rig) -> None:
    """But for what is in a worker's hand."""
    _source(rig).take_back("default", _ASIDE)
    _source(rig).empty(_ASIDE)


def _source(rig: Rig) -> Source:
    return Rows(rig) if kind(rig) == "postgresql" else Filler(rig)


@contextmanager
def _behind_a_pooler() -> Iterator[Rig]:
    """PgBouncer in transaction mode, with a few sessions of the server."""
    with tempfile.TemporaryDirectory(prefix="queuepool-bench-") as folder, ExitStack() as stack:
        server = stack.enter_context(running(Postgres, durable=True))
        url = stack.enter_context(pooler(server, "transaction", _SESSIONS)).before(server.url)
        rig = Rig(Path(folder), ConnectionSettings(url=url, timeout=PATIENCE))
        create(rig)
        yield rig


if __name__ == "__main__":
    main()
