"""The kept steps of a job, forgotten by name, so that they run again."""

from __future__ import annotations

from contextlib import ExitStack, closing

import click

from queuepool.cli import output
from queuepool.cli.acted import note
from queuepool.cli.group import Verbs
from queuepool.cli.options import CONNECTION, TEXT, Where, located
from queuepool.jobs.client import Queue
from queuepool.operating.kept_steps import forget
from queuepool.unix.exit_codes import FAILED, OK


@click.group(cls=Verbs)
def steps() -> None:
    """Forget a step that is kept of a job, so that it runs again"""


@steps.command("forget")
@located(*CONNECTION)
@click.argument("job_id", metavar="ID", type=TEXT)
@click.argument("name", metavar="NAME", type=TEXT)
def forget_one(where: Where, job_id: str, name: str) -> int:
    """Forget a step, or a cursor, by its name as `queuepool job ID` shows it

    The job's next attempt runs the step again, or goes through all rows again. An attempt that runs now is not changed.
    """
    with ExitStack() as stack:
        places = [stack.enter_context(closing(Queue(one, by_hand=True))).stores for one in where.connections()]
        forgotten = [stores for stores in places if forget(stores, job_id, name)]
        for stores in forgotten:
            note(stores, "step forget", f"step {name} of job {job_id}")
    if not forgotten:
        output.complain(f"no step {name} is kept of job {job_id}")
        return FAILED
    output.say(f"forgot step {name} of job {job_id}")
    return OK
