"""What the pools are doing, from their boards alone: works while the store is away or the master is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from queuepool.board import boot_report
from queuepool.board.about import About
from queuepool.board.health import NOT_RUNNING, Health, health_of, health_of_none
from queuepool.board.overview import JobRow, PoolOverview, ProcessRow
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import board_of, local_pool
from queuepool.cli import output
from queuepool.cli.error_report import code_of
from queuepool.cli.local import code_for, runtime_of
from queuepool.cli.options import JSON, PLACE, Where, located, option, parsed
from queuepool.cli.waiting import within
from queuepool.config.pool_queues import queue_words
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.config.values import some_seconds
from queuepool.errors import NotRunning, StoreDown, StoreError
from queuepool.steward.orphaned_boards import left_by_others, words_for
from queuepool.unix import exit_codes

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue
    from queuepool.operating.notices import PublishedPool

_COLUMNS = (
    "process", "pid", "state", "done", "failed", "released", "memory", "job", "id", "queue", "attempt", "running",
)  # fmt: skip
#: columns that a narrow terminal leaves out, the least needed first, and those that it does not cut
_SPARE = ("released", "attempt", "failed", "memory", "queue", "done", "pid")
_WHOLE = ("process", "pid", "id", "running")


@click.command()
@located(*PLACE)
@click.option("--all", "everywhere", is_flag=True, help="Show the pools of all hosts, from their last notices")
@option(
    "--watch",
    metavar="[SECONDS]",
    is_flag=False,
    flag_value="2",
    type=parsed(some_seconds),
    help="Show it again and again until Ctrl-C  [without SECONDS: every 2]",
)
@JSON
def status(where: Where, everywhere: bool, watch: float | None, as_json: bool) -> int:
    """Show the local pools: processes, jobs, counters

    Exits with 0 if each of them takes jobs or was paused, 3 if one does not run, 4 if one takes no jobs for another
    reason (no worker becomes ready, it has none, its store is away), and 1 if --all found a store away.

    With --all, a pool that was not stopped and has published nothing for 30 seconds is lost: for an hour it is shown
    with what it ran, and the exit code is 5. One that was stopped is shown for an hour as left.
    """
    if watch is None:
        return _once(where, everywhere, as_json)
    if as_json:
        raise click.UsageError("--json prints one document: leave out --watch")
    code = exit_codes.OK
    with suppress(KeyboardInterrupt):
        while True:
            output.clear_screen()
            code = _once(where, everywhere, as_json)
            output.flush()
            within(watch, lambda: False, poll=watch)
    return code


def _once(where: Where, everywhere: bool, as_json: bool) -> int:
    pools, code = _published(where) if everywhere else (_local(where, where.pools()), exit_codes.OK)
    if as_json:
        output.document([pool.facts for pool in pools])
    else:
        _show(pools)
    return code or code_for([pool.health for pool in pools if not pool.has_left])


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a pool: for programs, and for people."""

    #: ready for JSON
    facts: Mapping[str, Any]
    #: ``None`` for a damaged notice
    health: Health | None
    lines: Sequence[str]
    processes: Sequence[ProcessRow] = ()
    #: the names of boards
    left_by_others: Sequence[str] = ()
    #: whether it was stopped, and is shown because it was here lately
    has_left: bool = False


def _local(where: Where, pools: Iterable[PoolSettings]) -> list[_Shown]:
    return [_status_of(pool.name, runtime_of(where, pool)) for pool in pools]


def _published(where: Where) -> tuple[list[_Shown], int]:
    """The pools of all hosts, and the exit code; for a store that does not answer, its local pools."""
    found: list[_Shown] = []
    code = exit_codes.OK
    for connection in where.connections():
        try:
            found += _on_all_hosts(where, connection)
        except StoreError as error:
            code = max(code, code_of(error))
            words = f"pools of other hosts on connection {connection.name} cannot be seen: here are those of this host"
            output.complain(f"note: {words}")
            found += _local(where, (pool for pool in where.pools() if pool.connection == connection))
    return found, code


def _on_all_hosts(where: Where, connection: ConnectionSettings) -> Iterator[_Shown]:
    from queuepool.jobs.client import Queue
    from queuepool.operating.notices import latest_of, left_of, names_of_pools  # imported here: boards need no store
    from queuepool.stores.contract import NOTICE_KEPT

    with closing(Queue(connection, by_hand=True)) as queue:
        notices = queue.stores.control.pools(NOTICE_KEPT)
        now = _clock(queue, notices)
        found = [pool for pool in latest_of(notices, now) if where.pool_name in (None, pool.name)]
        left = [
            pool for pool in left_of(queue.stores.control.left(), now, found) if where.pool_name in (None, pool.name)
        ]
    names = names_of_pools(found)
    yield from (_elsewhere(pool, names.get(pool.instance, "")) for pool in found)
    for pool in left:
        words = f"pool {pool.name} on {pool.host}: left {pool.age:.0f} s ago done={pool.done} failed={pool.failed}"
        yield _Shown(pool.to_json(), None, [words], has_left=True)


def _clock(queue: Queue, notices: Sequence[Mapping[str, Any]]) -> float:
    """The store's clock; the latest notice's if only the store of the control keys can be reached."""
    try:
        return queue.stores.queue.now()
    except StoreDown:
        return float(max((notice["at"] for notice in notices), default=0.0))


def _status_of(name: str, runtime: RuntimeDir) -> _Shown:
    left = left_by_others(runtime)
    try:
        found = local_pool(name, runtime, board_of(runtime))
    except NotRunning as error:
        return _missing(name, runtime, error, left)
    pool, health = found.overview, health_of(found.overview)
    lines = _lines(pool, health, "", _beat(pool), _origin(found.about) if found.about else "")
    facts = {**found.to_json(), "left_by_others": left, **health.to_json()}
    return _Shown(facts, health, [*lines], pool.processes, left)


def _missing(name: str, runtime: RuntimeDir, error: NotRunning, left: list[str]) -> _Shown:
    """A pool that has no live master."""
    unsettled = not error.another and len(runtime.board_paths()) > len(left)
    down, health = boot_report.cause_of_retry(runtime.path), health_of_none()
    place = {"pool": name, "directory": str(runtime.path), "state": NOT_RUNNING}
    why = {"another": error.another, "unsettled": unsettled, "down": down}
    facts = {**place, **why, "left_by_others": left, **health.to_json()}
    if error.another:
        return _Shown(facts, health, [f"pool {name}: {error.another}"], (), left)
    if down is not None:
        return _Shown(facts, health, [f"pool {name}: down, its parent tries again: {down}"], (), left)
    words = "; it was killed, or left jobs that the next start settles" if unsettled else ""
    lines = [
        f"pool {name}: {NOT_RUNNING} (no live master in {runtime.path}){words}",
        "choose other pools by -c FILE, --pool NAME or --runtime-dir DIR; those of other users are elsewhere",
    ]
    return _Shown(facts, health, lines, (), left)


def _elsewhere(found: PublishedPool, name: str) -> _Shown:
    """A pool of any host, from its notice; if it is lost, the processes that ran a job.

    ``name``: the one that distinguishes it from other pools.
    """
    pool, health = found.overview, found.health
    if pool is None or health is None:
        words = f"pool {found.name} on {found.host}: its notice is damaged"
        return _Shown(found.to_json(), health, [words])
    origin = f"queues={queue_words(found.queues, found.weights)}" if found.queues else ""
    _, sign, instance = name.partition("#")
    place = f" on {found.host}{sign}{instance}"
    lines = _lines(pool, health, place, f"{found.rate_words}{found.age_words or _beat(pool)}", origin)
    processes = [process for process in pool.processes if process.job or not found.is_lost]
    return _Shown(found.to_json(), health, [*lines], processes)


def _show(pools: Sequence[_Shown]) -> None:
    if not any(not pool.has_left for pool in pools):
        output.say("no pool has published a notice")
    for pool in pools:
        for line in pool.lines:
            output.fold(line)
        output.table(_COLUMNS, map(_row, pool.processes), _SPARE, _WHOLE)
        for name in pool.left_by_others:
            output.say(words_for(name))


def _origin(about: About) -> str:
    """Where the pool was started from, as far as it is known."""
    words = {
        "store": about.store,
        "prefix": about.prefix,
        "queues": queue_words(about.queues, about.weights),
        "configuration": about.configuration,
        "directory": about.working_directory,
        "user": about.user,
    }
    return " ".join(f"{key}={value}" for key, value in words.items() if value)


def _lines(pool: PoolOverview, health: Health, host: str, age: str, origin: str) -> Iterator[str]:
    yield (
        f"pool {pool.pool}{host}: {health.state} master={pool.master} since={pool.since} "
        f"workers={pool.workers} busy={pool.busy} done={pool.done} failed={pool.failed} "
        f"released={pool.released} restarts={pool.restarts}{f' parked={pool.parked}' if pool.parked else ''}{age}"
    )
    if origin:
        yield origin
    if pool.scaling:
        yield f"workers: {pool.scaling.words}"
        if reasons := pool.scaling.reasons:
            yield reasons
    yield from (trouble.text for trouble in health.troubles)


def _beat(pool: PoolOverview) -> str:
    return "" if pool.beat_age is None else f" beat={pool.beat_age:.1f}s"


def _running(job: JobRow) -> str:
    """How long the job has run, its limit, and the progress that it reports."""
    limit = f" of {job.running + job.time_left:.0f}" if job.time_left is not None else ""
    return f"{job.running:.1f}{limit} s{f', {job.far}' if job.far else ''}"


def _row(process: ProcessRow) -> list[object]:
    job = process.job
    counts = ["-" if count is None else count for count in (process.done, process.failed, process.released)]
    memory = "-" if process.memory is None else f"{process.memory} MB"
    about = [job.name, job.id, job.queue, job.attempt] if job else ["-"] * 4
    return [process.name, process.pid, process.state, *counts, memory, *about, _running(job) if job else "-"]
