"""What the pools do, from their boards alone: works while the store is away or the master is stopped."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import overview
from queuepool.cli import output
from queuepool.cli.flags import PLACE
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, Where, located
from queuepool.errors import NotRunning
from queuepool.steward.orphaned_boards import left_by_others, words_for
from queuepool.unix.exit_codes import NOT_MOVING, NOT_RUNNING

_COLUMNS = (
    "process", "pid", "state", "done", "failed", "released", "memory", "job", "queue", "attempt", "running",
)  # fmt: skip
_NOT_RUNNING, _STUCK = "not running", "stopped by a signal"
#: what a pool in these states says of itself
_WORDS = {
    "starting": "workers wait: the steward has not read the control keys yet (restart, pause, maintenance)",
    "failing": "the steward dies again and again, see the log: jobs of dead workers and delayed jobs wait",
}


@click.command()
@located(*PLACE)
@click.option("--all", "everywhere", is_flag=True, help="Show the pools of all hosts, from their last notices")
@JSON
def status(where: Where, everywhere: bool, as_json: bool) -> int:
    """Show the local pools: processes, jobs, counters

    Exits with 0 if all of them run, 3 if one does not, 4 if one is stopped, starting or failing.
    """
    pools = (
        _published(where) if everywhere else [_status_of(pool.name, runtime_of(where, pool)) for pool in where.pools()]
    )
    if as_json:
        output.document(pools)
    else:
        _show(pools)
    states = {pool["state"] for pool in pools}
    if not pools or _NOT_RUNNING in states:
        return NOT_RUNNING
    return NOT_MOVING if states & {_STUCK, *_WORDS} else 0


def _published(where: Where) -> list[dict[str, Any]]:
    from queuepool.jobs.client import Queue  # imported here: the boards of this host need no store

    found: list[dict[str, Any]] = []
    for connection in where.connections():
        with closing(Queue(connection, by_hand=True)) as queue:
            found += (pool for pool in queue.stores.control.pools() if where.pool_name in (None, pool["pool"]))
    return found


def _status_of(name: str, runtime: RuntimeDir) -> dict[str, Any]:
    if runtime.path.exists() and not os.access(runtime.path, os.R_OK | os.X_OK):
        raise PermissionError(13, "belongs to another user", str(runtime.path))
    others = {"left_by_others": left_by_others(runtime)}
    place = {"pool": name, "directory": str(runtime.path)}
    try:
        facts = overview(name, runtime.board()) | place | others
    except NotRunning as error:
        unsettled = not error.another and len(runtime.board_paths()) > len(others["left_by_others"])
        return {**place, "state": _NOT_RUNNING, "another": error.another, "unsettled": unsettled, **others}
    found = runtime.about()
    facts |= found.facts() if found else {}
    return facts | ({"state": _STUCK} if _is_stopped(facts["master"]) else {})


def _is_stopped(pid: int) -> bool:
    """Whether the process is stopped, as by SIGSTOP; ``False`` where there is no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def _show(pools: Sequence[Mapping[str, Any]]) -> None:
    if not pools:
        output.say("no pool has published itself")
    for pool in pools:
        if pool["state"] == _NOT_RUNNING:
            for line in _not_running_lines(pool):
                output.say(line)
        else:
            for line in _header_lines(pool):
                output.say(line)
            output.table(_COLUMNS, map(_row, pool["processes"]))
        for name in pool.get("left_by_others", ()):
            output.say(words_for(name))


def _not_running_lines(pool: Mapping[str, Any]) -> Iterator[str]:
    if pool["another"]:
        yield f"pool {pool['pool']}: {_NOT_RUNNING} (the one in {pool['directory']} is {pool['another']})"
        return
    left = "; it was killed, or left jobs that the next start settles" if pool["unsettled"] else ""
    yield f"pool {pool['pool']}: {_NOT_RUNNING} (no live master in {pool['directory']}){left}"
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
    host = f" on {pool['host']}" if "host" in pool else ""
    yield (
        f"pool {pool['pool']}{host}: {pool['state']} master={pool['master']} since={pool['since']} "
        f"workers={pool['workers']} busy={pool['busy']} done={pool['done']} failed={pool['failed']} "
        f"released={pool['released']} restarts={pool['restarts']}"
    )
    if origin := _origin(pool):
        yield origin
    if words := _WORDS.get(pool["state"]):
        yield words
    if outdated := pool.get("outdated"):  # missing in a notice of an older version
        why = f", new ones do not come to work: {problem}" if (problem := pool["boot_problem"]) else ""
        yield f"restart under way: workers that still run the old code: {outdated}{why}"
    if pool["maintenance"]:
        yield "maintenance mode"
    if pool["paused"]:
        yield f"paused queues: {', '.join(pool['paused'])}"
    if pool["store_lost"]:
        yield f"the store is away since {pool['store_lost']}"
    for store in ("failed_store", "control_store"):
        if since := pool.get(f"{store}_lost"):
            yield f"the {store.replace('_', ' ')} is away since {since}; the jobs go on"
    if waiting := pool.get("unrecorded"):
        yield f"failed jobs that wait for the failed store: {waiting}"


def _row(process: Mapping[str, Any]) -> list[object]:
    job: Mapping[str, Any] = process.get("job", {})
    name = f"{process['role']} {process['number']}" if process["number"] else process["role"]
    counts = [process.get(key, "-") for key in ("done", "failed", "released")]
    memory = f"{process['memory']} MB" if "memory" in process else "-"
    running = f"{job['running']:.1f} s" if job else "-"
    about = [job.get(key, "-") for key in ("name", "queue", "attempt")]
    return [name, process["pid"], process["state"], *counts, memory, *about, running]
