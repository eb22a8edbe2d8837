"""The local pools: start, stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from functools import partial

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.error_report import code_of
from queuepool.cli.local import of_running, signal_master
from queuepool.cli.options import PLACE, POOL, Where, located, option, parsed
from queuepool.config.values import seconds
from queuepool.errors import NotRunning, QueuepoolError

#: seconds between checks
_POLL = 0.02


@click.command()
@located(*POOL)
def start(where: Where) -> int:
    """Run the pool in the foreground"""
    pools = where.pools()
    from queuepool.pool.start import start_all  # imported here: it loads the store's library

    served = {queue for pool in where.load().pools for queue in pool.queues}  # also by pools that --pool leaves out
    return start_all(pools, report=code_of, served=served)


@click.command()
@located(*PLACE)
@click.option("--now", is_flag=True, help="Kill running jobs; they go back to their queues")
@option(
    "--wait",
    metavar="SECONDS",
    type=parsed(seconds),
    default=0.0,
    help="Wait this long for the pools to end  [default: 0]",
)
def stop(where: Where, now: bool, wait: float) -> None:
    """Stop the local pools after their running jobs"""
    signum = signal.SIGQUIT if now else signal.SIGTERM
    masters = of_running(where, lambda runtime: (runtime, signal_master(runtime, signum)), signum)
    until = time.monotonic() + wait
    for runtime, pid in masters:
        if not wait:
            jobs = "go back to their queues" if now else "may finish"
            output.say(f"pool {runtime.name}: stopping, its running jobs {jobs}")
        elif within(max(until - time.monotonic(), 0.0), partial(_is_over, runtime, pid)):
            output.say(f"pool {runtime.name}: stopped")
        else:
            raise QueuepoolError(f"pool {runtime.name!r} (pid {pid}) still runs after {wait:g} s")


def _is_over(runtime: RuntimeDir, pid: int) -> bool:
    try:
        return runtime.master_pid() != pid
    except NotRunning:
        return True


def within(limit: float, is_true: Callable[[], bool]) -> bool:
    """Whether it becomes true within ``limit`` seconds; waits for it."""
    deadline = time.monotonic() + limit
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True
