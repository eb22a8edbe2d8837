"""Cancel one job."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict

import click

from queuepool.board.about import operator
from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.cli.targets import Elsewhere, reaching
from queuepool.config.settings import ConnectionSettings
from queuepool.config.values import seconds
from queuepool.jobs.cancelling import Cancellation, CancelOutcome, CancelWish
from queuepool.jobs.client import Queue
from queuepool.operating.cancelling import cancel_on, words_of
from queuepool.stores.journal import cancelled_job
from queuepool.unix.exit_codes import FAILED, OK

#: seconds for a job that can end by itself
_GRACE = 10.0


@click.command()
@located(*PLACE)
@click.argument("job_id", metavar="ID", type=TEXT)
@click.option("--requeue", is_flag=True, help="Put a running job back on its queue; this attempt does not count")
@option(
    "--grace", metavar="SECONDS", type=parsed(seconds), default=_GRACE,
    help="How long a job that can end by itself may take  [default: 10]",
)  # fmt: skip
@reaching
@JSON
def cancel(where: Where, job_id: str, requeue: bool, grace: float, as_json: bool, elsewhere: Elsewhere | None) -> int:
    """Cancel one job that waits, or that runs on this host

    A job that waits is taken out of its queue. One that runs is ended: a coroutine is cancelled, one that asks
    current().stopping is told, and any other is killed with its worker. Either is recorded as failed and never retried.
    Exits with 1 if the job was not cancelled. With --on or --everywhere, it is ended if a pool there runs it.
    """
    if elsewhere:
        from queuepool.cli.remote import command  # imported here: few jobs run elsewhere

        details = {"id": job_id, "grace": grace, "requeue": requeue}
        return command(where, elsewhere, "cancel", details, takes=grace)
    reading, wish = Reading(where.connections()), CancelWish(job_id, operator(), requeue, grace)
    found = None
    for one in reading.each(lambda connection: [_cancel(where, connection, wish)]):
        if found is None or one.outcome is not CancelOutcome.UNKNOWN:
            found = one
        if one.outcome is not CancelOutcome.UNKNOWN:
            break
    if found is None:
        return FAILED
    if as_json:
        output.document(output.versioned({key: value or None for key, value in asdict(found).items()}))
    else:
        (output.say if found else output.complain)(words_of(found))
        if found.no_hook:
            output.complain(f"note: {found.no_hook}")
    return OK if found else FAILED


def _cancel(where: Where, connection: ConnectionSettings, wish: CancelWish) -> Cancellation:
    folders = [runtime_of(where, pool).path for pool in where.pools() if pool.connection == connection]
    with closing(Queue(connection, by_hand=True)) as queue:
        found = cancel_on(where, queue, folders, wish)
        if found:
            note(queue.stores, "cancel", cancelled_job(wish.job_id, requeue=wish.requeue), 1)
        return found
