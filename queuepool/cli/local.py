"""The local pool that a verb means, and how a verb that shows pools exits."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from queuepool.board.health import DAMAGED, LOST, NOT_RUNNING, health_of
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.config.settings import PoolSettings
from queuepool.errors import NotRunning
from queuepool.unix import exit_codes, fork

T = TypeVar("T")


def runtime_of(where: Where, pool: PoolSettings) -> RuntimeDir:
    """The pool's directory. One named on the command line is taken, whatever pool is there."""
    return RuntimeDir(pool, takes_any="pool.runtime_dir" in where.overrides)


def of_running(where: Where, act: Callable[[RuntimeDir], T]) -> list[T]:
    """What ``act`` returns of each pool that is meant and runs here; names the others.

    Raises ``NotRunning`` if none runs.
    """
    found, missing = list[T](), list[NotRunning]()
    for pool in where.pools():
        try:
            found.append(act(runtime_of(where, pool)))
        except NotRunning as error:
            missing.append(error)
    if not found:
        raise missing[0]
    for each in missing:
        output.complain(f"note: {each}")
    return found


def signal_master(runtime: RuntimeDir, signum: signal.Signals) -> int:
    """Signal the pool's master, and no process that has its pid after it; returns the pid. Raises ``NotRunning``."""
    pid = runtime.master_pid()
    fork.signal_other(pid, signum, lambda pid: runtime.master_pid() == pid)
    return pid


def code_for(pools: Sequence[Mapping[str, Any]]) -> int:
    """The exit code of a verb that has shown these pools."""
    if not pools or any(pool.get("state") in (NOT_RUNNING, LOST) for pool in pools):
        return exit_codes.NOT_RUNNING
    return exit_codes.NOT_MOVING if any(map(_idles, pools)) else exit_codes.OK


def _idles(pool: Mapping[str, Any]) -> bool:
    """Whether no job can begin, and not because the pool was paused."""
    try:
        health = health_of(pool)
    except DAMAGED:  # a notice from the store may have any form
        return False
    return not (health.takes_jobs or health.rests)
