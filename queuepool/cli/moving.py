"""Waiting jobs that are taken out of their queue: dropped, or moved to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import NamedTuple

import click

from queuepool.cli import output
from queuepool.cli.finding import Question, carry_out, filtered, note_closed, states_of
from queuepool.cli.options import CONNECTION, Where, located, option, parsed
from queuepool.cli.output import FORCE
from queuepool.cli.queues import QUEUES, by_connection, one_queue
from queuepool.config.settings import ConnectionSettings
from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import Errand
from queuepool.operating.queues import all_queues
from queuepool.operating.scopes import Scope, scope_of
from queuepool.search.bulk import Act, OfFailedJobs, OfWaitingJobs
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.settlement.held_locks import HeldLocks
from queuepool.stores.contract import Shelf
from queuepool.unix.exit_codes import FAILED

_SHELVES: tuple[Shelf, ...] = ("ready", "delayed")
_STATE = option(
    "--state", "states", metavar="STATE", type=parsed(states_of(*_SHELVES)), default=_SHELVES,
    help="Only ready, or only delayed ones",
)  # fmt: skip
_QUEUE = parsed(one_queue)


@click.command()
@located(*CONNECTION)
@QUEUES
@_STATE
@filtered
@FORCE
def drop(where: Where, queues: Sequence[str], states: Sequence[str], wanted: Filter, force: bool) -> int:
    """Drop the waiting jobs that fit, with their unique locks

    By default in all queues that are not empty; with --pool, in its queues. What a worker has is left. It says how many
    there are and asks first.
    """
    if not queues and wanted.is_empty:
        raise click.UsageError("name queues, or give filters")
    where.require(*queues)
    every: dict[ConnectionSettings, list[str]] = {connection: [] for connection in where.connections()}
    meant = by_connection(where, queues) if queues else every
    return max([_drop_on(where, one, names, states, wanted, force) for one, names in meant.items()])


@click.command()
@located(*CONNECTION)
@click.argument("queue", metavar="FROM", type=_QUEUE)
@click.argument("target", metavar="TO", type=_QUEUE)
@option(
    "--state",
    "states",
    metavar="STATE,...",
    type=parsed(states_of(*_SHELVES, "failed")),
    default=_SHELVES,
    help="Of ready, delayed and failed  [default: the first two]",
)
@filtered
@FORCE
def move(where: Where, queue: str, target: str, states: Sequence[str], wanted: Filter, force: bool) -> int:
    """Move waiting jobs from one queue to another of the same connection

    Each is in one of both at any moment, and keeps its unique lock, its attempts and the time at which it is due. A job
    that a worker has stays; a failed one (--state failed) begins anew there. It says how many there are and asks first.
    """
    if queue == target:
        raise click.UsageError("FROM and TO are the same queue")
    where.require(queue)
    connection = _common(where, queue, target)
    shelves = [shelf for shelf in _SHELVES if shelf in states]
    with ExitStack() as stack:
        opened = stack.enter_context(closing(Queue(connection, by_hand=True)))
        look, steps = Look(opened.stores, wanted), list[Step]()
        if shelves:
            steps.append(_waiting(look, queue, shelves, lambda acts: partial(acts.move_to, target)))
        if "failed" in states:
            scope = stack.enter_context(scope_of(where, connection, queue=queue))
            steps.append(_failed(look, scope, target))
        code = _all_of("Move", "moved", f" from {queue} to {target}", look, steps, force)
    if note := where.note_on(target):
        output.complain(note)
    return code


def _drop_on(
    where: Where, connection: ConnectionSettings, names: Sequence[str], states: Sequence[str], wanted: Filter,
    force: bool,
) -> int:  # fmt: skip
    with closing(Queue(connection, by_hand=True)) as opened:
        look = Look(opened.stores, wanted)
        shelves = [shelf for shelf in _SHELVES if shelf in states]
        queues = names or list(all_queues(where, connection, opened, output.complain))
        steps = [_waiting(look, queue, shelves, lambda acts: acts.drop) for queue in queues]
        return _all_of("Drop", "dropped", f" on connection {connection.name}", look, steps, force)


class Step(NamedTuple):
    """The jobs of one place: to be read once to count them, and once more to act on them."""

    pages: Callable[[], Iterator[list[FoundJob]]]
    errand: Callable[[], Errand]


def _waiting(look: Look, queue: str, shelves: Sequence[Shelf], act_of: Callable[[OfWaitingJobs], Act]) -> Step:
    counted = look.waiting(queue, shelves)

    def errand() -> Errand:
        found = counted.again()  # not those that were pushed while the question stood
        return found.pages(), act_of(OfWaitingJobs(look, HeldLocks(look.stores.settings), queue, found))

    return Step(counted.pages, errand)


def _failed(look: Look, scope: Scope, target: str) -> Step:
    began = scope.store.now()
    act = partial(OfFailedJobs(scope.queue.stores, scope.locks, look.pace).retry_on, target)
    return Step(lambda: scope.pages(look, began), lambda: (scope.pages(look, began), act))


def _all_of(verb: str, done: str, place: str, look: Look, steps: Sequence[Step], force: bool) -> int:
    """Count and ask, unless by ``force``; then do it. Returns the exit code."""
    if not force:
        question = Question(verb, "job", f"nothing was {done}")
        question.count(place, chain.from_iterable(step.pages() for step in steps))
        if question.is_declined():
            return FAILED
        note_closed(look)
        steps = steps if question.is_any else ()  # nobody was asked
    return carry_out(look.stores, verb.lower(), (step.errand() for step in steps), done, place)


def _common(where: Where, queue: str, target: str) -> ConnectionSettings:
    """The connection of both queues. Raises ``UsageError`` if another one has the target."""
    found = where.connection_of(queue)
    others = [pool.connection for pool in where.load().pools if target in pool.queues and pool.connection != found]
    if others and target not in where.queues(found):
        raise click.UsageError(
            f"queue {target} is on connection {others[0].name}, and {queue} on {found.name}: "
            "jobs move between queues of one connection"
        )
    return found
