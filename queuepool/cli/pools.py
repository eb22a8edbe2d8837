"""The local pools: start, stop."""

from __future__ import annotations

import signal
import time
from functools import partial

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.cli import output
from queuepool.cli.acted import ActedOn, note_local
from queuepool.cli.error_report import code_of
from queuepool.cli.local import of_running, signal_master
from queuepool.cli.options import PLACE, POOL, Where, located, option, parsed
from queuepool.cli.targets import Elsewhere, reaching
from queuepool.cli.waiting import within
from queuepool.config.values import seconds
from queuepool.errors import NotRunning, QueuepoolError
from queuepool.unix.exit_codes import OK

#: seconds that a drain waits by default
_DRAIN_WAIT = 300.0


@click.command()
@located(*POOL)
@click.option("--web", "has_web", is_flag=True, help="Show the dashboard beside it, for development: see [web]")
def start(where: Where, has_web: bool) -> int:
    """Run the pool in the foreground"""
    pools = where.pools()
    if has_web:
        from queuepool.cli.web import show_beside  # imported here: few pools have one

        show_beside(where)
    from queuepool.pool.start import start_all  # imported here: it loads the store's library

    served = {queue for pool in where.load().pools for queue in pool.queues}  # also by pools that --pool leaves out
    return start_all(pools, report=code_of, served=served)


@click.command()
@located(*PLACE)
@reaching
@click.option("--now", is_flag=True, help="Kill running jobs; they go back to their queues")
@option(
    "--wait",
    metavar="SECONDS",
    type=parsed(seconds),
    default=0.0,
    help="Wait this long for the pools to end  [default: 0]",
)
def stop(where: Where, now: bool, wait: float, elsewhere: Elsewhere | None) -> int:
    """Stop the local pools after their running jobs"""
    return _stop(where, "stop", wait, elsewhere, now=now)


@click.command()
@located(*PLACE)
@reaching
@option(
    "--wait",
    metavar="SECONDS",
    type=parsed(seconds),
    default=_DRAIN_WAIT,
    help=f"Wait this long for the pools to end  [default: {_DRAIN_WAIT:g}]",
)
def drain(where: Where, wait: float, elsewhere: Elsewhere | None) -> int:
    """Stop the local pools after their running jobs, and wait for their end"""
    return _stop(where, "drain", wait, elsewhere)


def _stop(where: Where, verb: str, wait: float, elsewhere: Elsewhere | None, *, now: bool = False) -> int:
    if elsewhere:
        from queuepool.cli.remote import command  # imported here: local pools need no store

        return command(where, elsewhere, verb, {"now": now}, end_within=wait)
    signum = signal.SIGQUIT if now else signal.SIGTERM

    def act(runtime: RuntimeDir) -> tuple[RuntimeDir, int, ActedOn]:
        acted = ActedOn.of(runtime)
        return runtime, signal_master(runtime, signum), acted

    masters = of_running(where, act, signum)
    note_local(where, verb, [acted for _, _, acted in masters])
    until = time.monotonic() + wait
    for runtime, pid, _ in masters:
        if not wait:
            jobs = "go back to their queues" if now else "may finish"
            output.say(f"pool {runtime.name}: stopping, its running jobs {jobs}")
        elif within(max(until - time.monotonic(), 0.0), partial(_is_over, runtime, pid)):
            output.say(f"pool {runtime.name}: stopped")
        else:
            raise QueuepoolError(f"pool {runtime.name!r} (pid {pid}) still runs after {wait:g} s")
    return OK


def _is_over(runtime: RuntimeDir, pid: int) -> bool:
    try:
        return runtime.master_pid() != pid
    except NotRunning:
        return True
