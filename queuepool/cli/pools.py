"""The local pool: start, stop, scale."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.error_report import code_of
from queuepool.cli.flags import PLACE, POOL
from queuepool.cli.local import runtime_of, signal_master
from queuepool.cli.options import Where, located, option, parsed
from queuepool.config.values import count, seconds
from queuepool.errors import NotRunning, QueuepoolError

#: seconds in which the master must do what the board requests, and between checks
_TIMEOUT, _POLL = 5.0, 0.02


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
@option("--wait", metavar="SECONDS", type=parsed(seconds), default=0.0, help="Wait this long for its end  [default: 0]")
def stop(where: Where, now: bool, wait: float) -> None:
    """Stop the local pool after its running jobs"""
    runtime = runtime_of(where)
    pid = signal_master(runtime, signal.SIGQUIT if now else signal.SIGTERM)
    if not wait:
        output.say(
            f"pool {runtime.name}: stopping, its running jobs {'go back to their queues' if now else 'may finish'}"
        )
    elif within(wait, lambda: not _is_master(runtime, pid)):
        output.say(f"pool {runtime.name}: stopped")
    else:
        raise QueuepoolError(f"pool {runtime.name!r} (pid {pid}) still runs after {wait:g} s")


@click.command()
@located(*PLACE)
@click.argument("workers", metavar="N", type=parsed(count))
def scale(where: Where, workers: int) -> None:
    """Scale the local pool to N workers"""
    runtime = runtime_of(where)
    board = runtime.board(write=True)
    limit = board.max_workers
    if workers > limit:
        raise click.BadParameter(f"this pool was started with room for {limit} workers", param_hint="N")
    board.header.scale = workers + 1
    if not within(_TIMEOUT, lambda: board.header.target == workers):
        raise QueuepoolError(f"the master of pool {runtime.name!r} (pid {board.name.pid}) does not answer")
    output.say(f"pool {runtime.name} has {workers} workers")


def _is_master(runtime: RuntimeDir, pid: int) -> bool:
    try:
        return runtime.master_pid() == pid
    except NotRunning:
        return False


def within(limit: float, is_true: Callable[[], bool]) -> bool:
    """Whether it becomes true within ``limit`` seconds; waits for it."""
    deadline = time.monotonic() + limit
    while not is_true():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True
