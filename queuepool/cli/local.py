"""The local pool that a verb means, and how a verb that shows pools exits."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

from queuepool.board import boot_report
from queuepool.board.health import LOST, NOT_RUNNING, Health
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.options import Where
from queuepool.config.settings import PoolSettings
from queuepool.errors import NotRunning, QueuepoolError
from queuepool.unix import exit_codes, fork
from queuepool.unix.signals import STOPS

T = TypeVar("T")
#: what a signal will do to a pool that is down
_LATER = {
    signal.SIGHUP: "it is tried again at once",
    signal.SIGUSR2: "it will be paused when it is back",
    signal.SIGCONT: "it will not be paused when it is back",
    **dict.fromkeys(STOPS, "it is not tried again"),
}


def runtime_of(where: Where, pool: PoolSettings) -> RuntimeDir:
    """The pool's directory. One named on the command line is used, whatever pool is in it."""
    return RuntimeDir(pool, takes_any="pool.runtime_dir" in where.overrides)


def of_running(where: Where, act: Callable[[RuntimeDir], T], signum: signal.Signals | None = None) -> list[T]:
    """What ``act`` returns for each chosen pool that runs here; reports the others.

    ``signum``: what to leave for one that is down, see ``board.boot_report``. Raises ``NotRunning`` if none runs, and
    none is down.
    """
    found, missing, is_left = list[T](), list[NotRunning](), False
    for runtime in (runtime_of(where, pool) for pool in where.pools()):
        try:
            found.append(act(runtime))
        except NotRunning as error:
            if signum and boot_report.cause_of_retry(runtime.path) is not None:
                boot_report.leave_signal(runtime.path, signum)
                output.say(f"pool {runtime.name} is down; {_LATER[signum]}")
                is_left = True
            else:
                missing.append(error)
    if not found and not is_left:
        raise missing[0]
    for each in missing:
        output.complain(f"note: {each}")
    return found


def refuse_down(where: Where) -> None:
    """Raise ``QueuepoolError`` for a pool that is down and is tried again by its parent."""
    for runtime in (runtime_of(where, pool) for pool in where.pools()):
        if (cause := boot_report.cause_of_retry(runtime.path)) is not None:
            raise QueuepoolError(f"pool {runtime.name} is down: {cause}")


def signal_master(runtime: RuntimeDir, signum: signal.Signals) -> int:
    """Signal the pool's master, never a later process with its pid; returns the pid. Raises ``NotRunning``."""
    pid = runtime.master_pid()
    fork.signal_other(pid, signum, lambda pid: runtime.master_pid() == pid)
    return pid


def code_for(healths: Sequence[Health | None]) -> int:
    """The exit code of a verb that has shown pools of this health; ``None``: a damaged notice."""
    known = [health for health in healths if health]
    if any(health.state == LOST for health in known):
        return exit_codes.LOST
    if not healths or any(health.state == NOT_RUNNING for health in known):
        return exit_codes.NOT_RUNNING
    # No job can begin, and not because the pool was paused.
    idles = any(not (health.takes_jobs or health.rests) for health in known)
    return exit_codes.NOT_MOVING if idles else exit_codes.OK
