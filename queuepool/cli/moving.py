"""Waiting jobs that are taken out of their queue: dropped, or moved to another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from typing import NamedTuple

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.finding import Question, carry_out, filtered, note_closed, states_of
from queuepool.cli.options import CONNECTION, TEXT, Where, located, option, parsed
from queuepool.cli.output import FORCE, counted
from queuepool.cli.queues import QUEUES, by_connection, one_queue
from queuepool.config.connections import identity_of
from queuepool.config.settings import ConnectionSettings
from queuepool.config.values import ON_THEIR_WAY
from queuepool.errors import StoreError
from queuepool.jobs.client import Queue
from queuepool.operating.carrying_out import Errand
from queuepool.operating.meant import MeantFailed, MeantParked, MeantWaiting, acts_in
from queuepool.operating.queues import all_queues
from queuepool.operating.scopes import Scope, scope_of
from queuepool.operating.targets import connection_instead
from queuepool.search.bulk import Act, OfWaitingJobs
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.search.transfer import Route, Transfer
from queuepool.stores.contract import Shelf
from queuepool.unix.exit_codes import FAILED

_SHELVES: tuple[Shelf, ...] = ("ready", "delayed")
_STATE = option(
    "--state", "states", metavar="STATE", type=parsed(states_of(*_SHELVES)), default=_SHELVES,
    help="Only ready, or only delayed ones",
)  # fmt: skip
_QUEUE = parsed(one_queue)
#: reasons, and ways of other moves, that are named
_MOST_REASONS = 5


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
@option("--connection", "there", metavar="NAME", type=TEXT, help="TO is a queue of this connection in the file")
@click.option(
    "--take-back",
    is_flag=True,
    help="Only put back what was on its way to a store that NAME led to before: what has come there is run twice",
)
@filtered
@FORCE
def move(
    where: Where, queue: str, target: str, states: Sequence[str], there: str | None, take_back: bool, wanted: Filter,
    force: bool,
) -> int:  # fmt: skip
    """Move waiting jobs from one queue to another, also of another connection

    Each is in one of both at any moment, and keeps its unique lock, its attempts and the time at which it is due. A job
    that a worker has stays; a failed one (--state failed) begins anew there. It says how many there are and asks first.
    With --connection all begin anew, and those that hold unique locks stay.
    """
    where.require(queue)
    connection = where.connection_of(queue) if there else _common(where, queue, target)
    elsewhere = _elsewhere(where, connection, there) if there else None
    if take_back and not (elsewhere and wanted.is_empty):
        raise click.UsageError("--take-back goes with --connection and with no filter")
    if elsewhere and take_back:
        return _take_back(where, (connection, queue), (elsewhere, target), force)
    if elsewhere:
        return _move_to(where, (connection, queue), (elsewhere, target), states, wanted, force)
    if queue == target:
        raise click.UsageError("FROM and TO are the same queue")
    shelves = [shelf for shelf in _SHELVES if shelf in states]
    with ExitStack() as stack:
        opened = stack.enter_context(closing(Queue(connection, by_hand=True)))
        look, steps = Look(opened.stores, wanted), list[Step]()
        if shelves:
            steps += _waiting(look, queue, shelves, lambda acts: partial(acts.move_to, target))
        if "failed" in states:
            scope = stack.enter_context(scope_of(where, connection, queue=queue))
            steps.append(_failed(look, scope, target))
        code = _all_of("Move", "moved", f" from {queue} to {target}", look, steps, force)
    if words := where.note_on(target):
        output.complain(words)
    return code


def _move_to(where: Where, source: Place, target: Place, states: Sequence[str], wanted: Filter, force: bool) -> int:
    (connection, queue), (there, name) = source, target
    if "failed" in states and connection.failed_url:
        raise click.UsageError("failed jobs are in another store than the queue: retry them, then move them")
    with ExitStack() as stack:
        opened, other = (stack.enter_context(closing(Queue(one, by_hand=True))) for one in (connection, there))
        look, route = Look(opened.stores, wanted), Route(queue, other.stores.arrivals.place(), there.name, name)
        transfer = Transfer(look, other.stores, route)
        steps = list[Step]()
        if shelves := [shelf for shelf in _SHELVES if shelf in states]:
            steps += _waiting_elsewhere(look, queue, shelves, transfer)
        if "failed" in states:
            scope = stack.enter_context(scope_of(where, connection, queue=queue))
            steps.append(_failed_elsewhere(look, scope, transfer))
        # Last: what goes back to its queue is not moved again.
        steps.append(Step(transfer.left_over, lambda: (transfer.left_over(), transfer.take_on)))
        try:
            code = _all_of("Move", "moved", f" from {queue} to {name} on connection {there.name}", look, steps, force)
        except (StoreError, KeyboardInterrupt):
            output.complain(
                f"note: jobs that are on their way are in queue {ON_THEIR_WAY}: the same command takes them on"
            )
            raise
        finally:
            for words in _notes_of(transfer, route):
                output.complain(words)
            if transfer.came:  # the journal of the other store has a line as well
                here = f"{queue} on connection {connection.name}"
                note(other.stores, "move", f"jobs from {here} to {name}", transfer.came)
        transfer.finish()
        return code


def _take_back(where: Where, source: Place, target: Place, force: bool) -> int:
    (connection, queue), (there, name) = source, target
    with ExitStack() as stack:
        opened, other = (stack.enter_context(closing(Queue(one, by_hand=True))) for one in (connection, there))
        look, route = Look(opened.stores, Filter()), Route(queue, other.stores.arrivals.place(), there.name, name)
        transfer = Transfer(look, other.stores, route)
        lost = Step(transfer.lost, lambda: (transfer.lost(), transfer.take_back))
        place = f" to {queue}, where those that have come elsewhere are run again"
        return _all_of("Take back", "taken back", place, look, [lost], force)


def _notes_of(transfer: Transfer, route: Route) -> Iterator[str]:
    """What was left, and why."""
    for why, count in transfer.staying.items():
        yield f"note: {counted(count, 'job')} left: {why}"
    for why, count in transfer.refused.most_common(_MOST_REASONS):
        yield f"{counted(count, 'job')} left in {route.origin}, which the other store does not take: {why}"
    if transfer.stale:
        old = f"{counted(transfer.stale, 'job')} of long ago in queue {ON_THEIR_WAY}"
        yield f"note: {old}: they may have come, or not; see --take-back"
    for other, count in transfer.others.most_common(_MOST_REASONS):
        yield f"note: {counted(count, 'job')} in queue {ON_THEIR_WAY}: {_of_others(other, route)}"


def _of_others(other: Route, ours: Route) -> str:
    """What a command with our route says of jobs that are on their way by another one."""
    if other.names == ours.names:
        return f"they were to come to the store that connection {ours.connection} led to before; see --take-back"
    return f"queuepool move {other.origin} {other.queue} --connection {other.connection} takes them on"


def _waiting_elsewhere(look: Look, queue: str, shelves: Sequence[Shelf], transfer: Transfer) -> Iterator[Step]:
    meant, parked = MeantWaiting(look, queue, shelves), MeantParked(look, queue)

    def errand() -> Errand:
        found, pages = meant.again()
        return transfer.going(pages, "waiting"), transfer.of_waiting(found)

    def errand_of_parked() -> Errand:
        pages, act = parked.errand(transfer.of_waiting)
        return transfer.going(pages, "parked"), act

    yield Step(lambda: transfer.going(meant.counted(), "waiting"), errand)
    if "ready" in shelves:
        yield Step(lambda: transfer.going(parked.counted(), "parked"), errand_of_parked)


def _failed_elsewhere(look: Look, scope: Scope, transfer: Transfer) -> Step:
    meant = MeantFailed(look, scope)
    return Step(
        lambda: transfer.going(meant.counted(), "failed"),
        lambda: (transfer.going(meant.again(), "failed"), transfer.of_failed),
    )


def _elsewhere(where: Where, connection: ConnectionSettings, name: str) -> ConnectionSettings | None:
    """The connection of this name; ``None`` if it is the same place. Raises ``UsageError``."""
    known = where.load().connections
    if name not in known:
        raise click.UsageError(f"there is no connection {name!r}, only: {', '.join(known)}")
    there = known[name]
    if there.signing == "require" and connection.signing == "off":
        raise click.UsageError(f"connection {name} takes only signed jobs, and {connection.name} does not sign them")
    return None if identity_of(there) == identity_of(connection) else there


def _drop_on(
    where: Where, connection: ConnectionSettings, names: Sequence[str], states: Sequence[str], wanted: Filter,
    force: bool,
) -> int:  # fmt: skip
    with closing(Queue(connection, by_hand=True)) as opened:
        look = Look(opened.stores, wanted)
        shelves = [shelf for shelf in _SHELVES if shelf in states]
        every = names or all_queues(where, connection, opened, output.complain)
        queues = [queue for queue in every if queue != ON_THEIR_WAY]  # whose jobs may fit by what is around them
        steps = [step for queue in queues for step in _waiting(look, queue, shelves, lambda acts: acts.drop)]
        return _all_of("Drop", "dropped", f" on connection {connection.name}", look, steps, force)


#: a queue of a connection
Place = tuple[ConnectionSettings, str]


class Step(NamedTuple):
    """The jobs of one place: to be read once to count them, and once more to act on them."""

    pages: Callable[[], Iterator[list[FoundJob]]]
    errand: Callable[[], Errand]


def _waiting(
    look: Look, queue: str, shelves: Sequence[Shelf], act_of: Callable[[OfWaitingJobs], Act]
) -> Iterator[Step]:
    meant, parked = MeantWaiting(look, queue, shelves), MeantParked(look, queue)
    yield Step(meant.counted, lambda: meant.errand(act_of))
    if "ready" in shelves:  # last, as workers park ready ones meanwhile
        yield Step(parked.counted, lambda: parked.errand(lambda found: act_of(acts_in(look, queue, found))))


def _failed(look: Look, scope: Scope, target: str) -> Step:
    meant = MeantFailed(look, scope)
    return Step(meant.counted, lambda: meant.errand(lambda acts: partial(acts.retry, queue=target)))


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
    if there := connection_instead(where, found, target):
        raise click.UsageError(
            f"queue {target} is on connection {there.name}, and {queue} on {found.name}: give --connection {there.name}"
        )
    return found
