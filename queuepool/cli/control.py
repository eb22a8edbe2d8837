"""Control pools: pause, continue, restart, maintenance. Local pools by signal, all pools through the store."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import click

from queuepool.board.about import operator
from queuepool.board.pauses import Pause, forget_pool_pause, note_pool_pause, pause_words
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.acted import ActedOn, note, note_local
from queuepool.cli.local import of_running, refuse_down, signal_master
from queuepool.cli.options import CONNECTION, PLACE, Where, located, option, parsed
from queuepool.cli.output import FORCE, has_terminal, is_declined
from queuepool.cli.queues import QUEUES, by_connection
from queuepool.cli.remote import command
from queuepool.cli.rollouts import LocalRestart, wait_for
from queuepool.cli.targets import Elsewhere, reaching
from queuepool.config.values import seconds
from queuepool.jobs.client import Queue
from queuepool.operating.pausing import pause_queue
from queuepool.operating.queues import may_be_misspelled
from queuepool.unix.exit_codes import FAILED, OK

#: the default wait in seconds
_DEFAULT_WAIT = "300"
WAIT: Callable[[Callable[..., int | None]], Callable[..., int | None]] = option(
    "--wait", metavar="[SECONDS]", is_flag=False, flag_value=_DEFAULT_WAIT, type=parsed(seconds), default=0.0,
    help=f"Wait until the new code works; exit with 1 if it does not  [default: 0; without SECONDS: {_DEFAULT_WAIT}]",
)  # fmt: skip


@click.command()
@located(*PLACE)
@reaching
@QUEUES
@FORCE
def pause(where: Where, queues: Sequence[str], elsewhere: Elsewhere | None, force: bool) -> int:
    """Pause the local pools, or queues on all hosts

    Asks about a queue that no pool serves and that holds nothing: its name may be misspelled.
    """
    if queues:
        _refuse_queues(elsewhere)
        if not force and _is_left(where, queues):
            return FAILED
        _for_each(where, queues, _pause)
        for words in filter(None, map(where.note_on, queues)):
            output.complain(words)
        return OK
    if elsewhere:
        return command(where, elsewhere, "pause")

    def act(runtime: RuntimeDir) -> None:
        note_pool_pause(runtime.board(), Pause(time.time(), operator()))
        signal_master(runtime, signal.SIGUSR2)

    _signal_masters(where, "pause", signal.SIGUSR2, act, "paused: its workers start no more jobs")
    return OK


@click.command("continue")
@located(*PLACE)
@reaching
@QUEUES
def resume(where: Where, queues: Sequence[str], elsewhere: Elsewhere | None) -> int:
    """Continue after a pause"""
    if queues:
        _refuse_queues(elsewhere)
        _for_each(where, queues, _resume)
        return OK
    if elsewhere:
        return command(where, elsewhere, "continue")

    def act(runtime: RuntimeDir) -> None:
        forget_pool_pause(runtime.board())
        signal_master(runtime, signal.SIGCONT)

    _signal_masters(where, "continue", signal.SIGCONT, act, "continues")
    return OK


@click.command()
@located(*PLACE)
@reaching
@WAIT
def restart(where: Where, wait: float, elsewhere: Elsewhere | None) -> int:
    """Replace the workers of all hosts, each after its job

    This concerns all pools on the configuration's connections; for one pool alone, run reload --pool on its host.
    With --wait it returns once the new code works in the local pools, or prints the cause and exits with 1. With --on
    and --everywhere each pool is told by itself and answers, and --wait waits for these.
    """
    if elsewhere:
        return command(where, elsewhere, "restart", renewed_within=wait)
    others = f"leave out --pool, or replace its workers on this host: queuepool reload --pool {where.pool_name}"
    connections = where.whole_connections("a restart reaches", otherwise=others)
    local = of_running(where, LocalRestart, signal.SIGHUP) if wait else []
    for connection in connections:
        with closing(Queue(connection, by_hand=True)) as queue:
            stamp = queue.stores.control.restart()
            note(queue.stores, "restart", f"all pools on connection {connection.name}")
        output.say(f"restart broadcast on connection {connection.name}: {stamp} ({iso(stamp)})")
    wait_for(local, wait)
    if wait:
        refuse_down(where)
    return OK


@click.command()
@located(*PLACE)
@reaching
@WAIT
def reload(where: Where, wait: float, elsewhere: Elsewhere | None) -> int:
    """Replace the workers of the local pools, each after its job

    Sends HUP to their masters. With --wait it returns once the new code works, or prints the cause and exits with 1.
    """
    if elsewhere:
        return command(where, elsewhere, "reload", renewed_within=wait)
    local = of_running(where, LocalRestart, signal.SIGHUP)
    for one in local:
        signal_master(one.runtime, signal.SIGHUP)
        output.say(f"pool {one.name}: its workers are being replaced, each after its job")
    note_local(where, "reload", [ActedOn.of(one.runtime) for one in local])
    if wait:
        wait_for(local, wait)
    refuse_down(where)
    return OK


@click.command()
@located(*CONNECTION)
def down(where: Where) -> None:
    """Begin maintenance mode

    No worker takes a job, except those with --force.
    """
    for connection in where.whole_connections("maintenance mode holds"):
        with closing(Queue(connection, by_hand=True)) as queue:
            queue.stores.control.down(queue.stores.queue.now(), operator())
            note(queue.stores, "down", f"connection {connection.name}")
        output.say(f"maintenance mode is on, connection {connection.name}")


@click.command()
@located(*CONNECTION)
def up(where: Where) -> None:
    """End maintenance mode"""
    for connection in where.whole_connections("maintenance mode holds"):
        with closing(Queue(connection, by_hand=True)) as queue:
            words = "maintenance mode was not on"
            if queue.stores.control.up():
                words = "maintenance mode is off"
                note(queue.stores, "up", f"connection {connection.name}")
            if queue.stores.control.read(()).down:
                words += ", but Laravel's is on: end it with php artisan up"
        output.say(f"{words}, connection {connection.name}")


def _signal_masters(
    where: Where, verb: str, signum: signal.Signals, act: Callable[[RuntimeDir], None], words: str
) -> None:
    def do(runtime: RuntimeDir) -> ActedOn:
        act(runtime)
        output.say(f"pool {runtime.name}: {words}")
        return ActedOn.of(runtime)

    note_local(where, verb, of_running(where, do, signum))


def _refuse_queues(elsewhere: Elsewhere | None) -> None:
    if elsewhere:
        raise click.UsageError("a queue is paused on all hosts: leave out --on and --everywhere")


def _for_each(where: Where, queues: Sequence[str], act: Callable[[Queue, str], object]) -> None:
    for connection, names in by_connection(where, queues).items():
        with closing(Queue(connection, by_hand=True)) as opened:
            for queue in names:
                act(opened, queue)


def _is_left(where: Where, queues: Sequence[str]) -> bool:
    """Whether nothing is to be paused, as some of the queues may be misspelled. Raises ``UsageError``."""
    found = list[str]()
    _for_each(where, queues, lambda opened, queue: found.extend([queue] * may_be_misspelled(where, opened, queue)))
    if not found:
        return False
    words = "; ".join(f"no pool serves queue {queue}, and it holds nothing" for queue in found)
    if not has_terminal():
        raise click.UsageError(f"{words}: to pause it all the same give --force")
    return is_declined(f"{words}. Pause it all the same?", "nothing was paused")


def _pause(connection: Queue, queue: str) -> None:
    stores = connection.stores
    if before := pause_queue(stores, queue, operator()):
        output.say(f"queue {queue}: already paused{pause_words(iso(before[0]), before[1])}")
        return
    output.say(f"queue {queue}: paused on all hosts")
    note(stores, "pause", f"queue {queue}")


def _resume(connection: Queue, queue: str) -> None:
    if connection.stores.control.resume(queue):
        output.say(f"queue {queue}: continues")
        note(connection.stores, "continue", f"queue {queue}")
    else:
        output.complain(f"queue {queue} was not paused")
