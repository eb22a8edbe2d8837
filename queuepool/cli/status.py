"""What the pools do, from their boards alone: works while the store is away or the master is stopped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from queuepool.board import retried_pool
from queuepool.board.health import DAMAGED, NOT_RUNNING, health_of, with_health
from queuepool.board.local_pool import board_of, facts_of
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.error_report import code_of
from queuepool.cli.local import code_for, runtime_of
from queuepool.cli.notices import age_words, latest_of, shown_processes
from queuepool.cli.options import JSON, PLACE, Where, located
from queuepool.config.settings import ConnectionSettings, PoolSettings
from queuepool.errors import NotRunning, StoreDown, StoreError
from queuepool.steward.orphaned_boards import left_by_others, words_for
from queuepool.unix import exit_codes

if TYPE_CHECKING:
    from queuepool.jobs.client import Queue

_COLUMNS = (
    "process", "pid", "state", "done", "failed", "released", "memory", "job", "id", "queue", "attempt", "running",
)  # fmt: skip
#: what a narrow terminal does without, the least needed first, and what it does not cut
_SPARE = ("released", "attempt", "failed", "memory", "queue", "done")
_WHOLE = ("process", "pid", "running")


@click.command()
@located(*PLACE)
@click.option("--all", "everywhere", is_flag=True, help="Show the pools of all hosts, from their last notices")
@JSON
def status(where: Where, everywhere: bool, as_json: bool) -> int:
    """Show the local pools: processes, jobs, counters

    Exits with 0 if each of them takes jobs or was paused, 3 if one does not run, 4 if one takes no jobs for another
    reason: no worker comes to work, it has none, its store is away; and 1 if --all found a store away.

    With --all, a pool that was not stopped and has published nothing for 30 seconds is lost: for an hour it is shown
    with what it ran, and the exit code is 3.
    """
    pools, code = _published(where) if everywhere else (_local(where, where.pools()), exit_codes.OK)
    if as_json:
        output.document(list(map(with_health, pools)))
    else:
        _show(pools)
    return code or code_for(pools)


def _local(where: Where, pools: Iterable[PoolSettings]) -> list[dict[str, Any]]:
    return [_status_of(pool.name, runtime_of(where, pool)) for pool in pools]


def _published(where: Where) -> tuple[list[dict[str, Any]], int]:
    """The pools of all hosts, and the exit code: of those on a store that does not answer, the local ones."""
    found: list[dict[str, Any]] = []
    code = exit_codes.OK
    for connection in where.connections():
        try:
            found += (pool for pool in _notices(connection) if where.pool_name in (None, pool["pool"]))
        except StoreError as error:
            code = max(code, code_of(error))
            found += _local(where, (pool for pool in where.pools() if pool.connection == connection))
    return found, code


def _notices(connection: ConnectionSettings) -> list[dict[str, Any]]:
    from queuepool.jobs.client import Queue  # imported here: the boards of this host need no store
    from queuepool.stores.contract import NOTICE_KEPT

    with closing(Queue(connection, by_hand=True)) as queue:
        notices = queue.stores.control.pools(NOTICE_KEPT)
        return latest_of(notices, _clock(queue, notices))


def _clock(queue: Queue, notices: Sequence[Mapping[str, Any]]) -> float:
    """The store's clock; the latest notice's if only the store of the control keys can be reached."""
    try:
        return queue.stores.queue.now()
    except StoreDown:
        return float(max((notice["at"] for notice in notices), default=0.0))


def _status_of(name: str, runtime: RuntimeDir) -> dict[str, Any]:
    others = {"left_by_others": left_by_others(runtime)}
    try:
        return facts_of(name, runtime, board_of(runtime)) | others
    except NotRunning as error:
        place = {"pool": name, "directory": str(runtime.path)}
        unsettled = not error.another and len(runtime.board_paths()) > len(others["left_by_others"])
        facts = {"another": error.another, "unsettled": unsettled, "down": retried_pool.cause_of(runtime.path)}
        return {**place, "state": NOT_RUNNING, **facts, **others}


def _show(pools: Sequence[Mapping[str, Any]]) -> None:
    if not pools:
        output.say("no pool has published itself")
    for pool in pools:
        lines, rows = _shown(pool)
        for line in lines:
            output.fold(line)
        output.table(_COLUMNS, rows, _SPARE, _WHOLE)
        for name in pool.get("left_by_others", ()):
            output.say(words_for(name))


def _shown(pool: Mapping[str, Any]) -> tuple[list[str], list[list[object]]]:
    """What is said of a pool, and the rows of its processes; a notice from the store may have any form."""
    try:
        if pool["state"] == NOT_RUNNING:
            return list(_not_running_lines(pool)), []
        return list(_header_lines(pool)), list(map(_row, shown_processes(pool)))
    except DAMAGED:
        if "host" not in pool:
            raise
        return [f"pool {pool['pool']} on {pool['host']}: its notice is damaged"], []


def _not_running_lines(pool: Mapping[str, Any]) -> Iterator[str]:
    if pool["another"]:
        yield f"pool {pool['pool']}: {pool['another']}"
        return
    if pool["down"] is not None:
        yield f"pool {pool['pool']}: down, and tried again by its parent: {pool['down']}"
        return
    left = "; it was killed, or left jobs that the next start settles" if pool["unsettled"] else ""
    yield f"pool {pool['pool']}: {NOT_RUNNING} (no live master in {pool['directory']}){left}"
    yield "other pools are meant by -c FILE, --pool NAME or --runtime-dir DIR; those of other users lie elsewhere"


def _origin(pool: Mapping[str, Any]) -> str:
    """Where the pool comes from, as far as it is known: notices from other hosts do not say."""
    words = {
        "store": pool.get("store"),
        "prefix": pool.get("prefix"),
        "queues": ",".join(pool.get("queues", ())),
        "configuration": pool.get("configuration"),
        "directory": pool.get("working_directory"),
        "user": pool.get("user"),
    }
    return " ".join(f"{key}={value}" for key, value in words.items() if value)


def _header_lines(pool: Mapping[str, Any]) -> Iterator[str]:
    host, health = f" on {pool['host']}" if "host" in pool else "", health_of(pool)
    yield (
        f"pool {pool['pool']}{host}: {health.state} master={pool['master']} since={pool['since']} "
        f"workers={pool['workers']} busy={pool['busy']} done={pool['done']} failed={pool['failed']} "
        f"released={pool['released']} restarts={pool['restarts']}{age_words(pool) or _beat(pool)}"
    )
    if origin := _origin(pool):
        yield origin
    yield from (trouble.text for trouble in health.troubles)


def _beat(pool: Mapping[str, Any]) -> str:
    age = pool.get("beat_age")  # missing in a notice of an older version
    return "" if age is None else f" beat={age:.1f}s"


def _running(job: Mapping[str, Any]) -> str:
    """How long the job has run, when its timeout is, and how far it says that it is."""
    left = job.get("time_left")  # missing in a notice of an older version
    limit = f" of {job['running'] + left:.0f}" if left is not None else ""
    far = f", {job['progress']:.0%} {job['note']}".rstrip() if "progress" in job else ""
    return f"{job['running']:.1f}{limit} s{far}"


def _row(process: Mapping[str, Any]) -> list[object]:
    job: Mapping[str, Any] = process.get("job", {})
    name = f"{process['role']} {process['number']}" if process["number"] else process["role"]
    counts = [process.get(key, "-") for key in ("done", "failed", "released")]
    memory = f"{process['memory']} MB" if "memory" in process else "-"
    running = _running(job) if job else "-"
    about = [job.get(key, "-") for key in ("name", "id", "queue", "attempt")]
    return [name, process["pid"], process["state"], *counts, memory, *about, running]
