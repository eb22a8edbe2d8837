"""Show where running jobs are in their code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

import click

from queuepool.board.board import Board
from queuepool.board.runtime_dir import boards_in
from queuepool.cli import output
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located
from queuepool.cli.targets import Elsewhere, reaching
from queuepool.errors import NoStack, StoreError
from queuepool.jobs.client import Queue
from queuepool.search.running import pools_of
from queuepool.steward.stacks import STACKS_TAKE, AskedWorker, asked_on, stack_lines, stack_row
from queuepool.unix.exit_codes import FAILED, OK


@click.command()
@located(*PLACE)
@click.argument("subject", metavar="ID|PID|POOL", type=TEXT)
@reaching
@JSON
def stack(where: Where, subject: str, as_json: bool, elsewhere: Elsewhere | None) -> int:
    """Show where a job is in its code, while it runs

    Of one job, of the worker with this pid, or of all busy workers of a pool. Works in C code too; the job goes on.
    With --on or --everywhere, pools there answer with as much as fits into 64 KB.
    """
    if elsewhere:
        from queuepool.cli.remote import command  # imported here: few are asked elsewhere

        return command(where, elsewhere, "stack", {"subject": subject}, takes=STACKS_TAKE)
    rows, is_whole = list[dict[str, Any]](), True
    with boards_in(runtime_of(where, pool).path for pool in where.pools()) as boards:
        found = list(_asked(where, boards, subject))
        for one in found:
            try:
                rows.append(stack_row(one))
            except NoStack as error:
                output.complain(str(error))
                is_whole = False
    if not found:
        output.complain(_nowhere(where, subject))
    if as_json:
        output.documents(rows)
    else:
        for row in rows:
            for line in stack_lines(row):
                output.say(line)
    return OK if found and is_whole else FAILED


def _asked(where: Where, boards: Sequence[Board], subject: str) -> Iterator[AskedWorker]:
    names = {runtime_of(where, pool).path: pool.name for pool in where.pools()}
    for board in boards:
        yield from asked_on(board, names.get(board.path.parent, ""), subject)


def _nowhere(where: Where, subject: str) -> str:
    """Why there is nothing to show: a pool of another host may run the job."""
    for connection in where.connections():
        with closing(Queue(connection, by_hand=True)) as queue, suppress(StoreError):
            for shown in pools_of((), queue.stores):
                if any(job.id == subject for process in shown.processes for job in process.jobs):
                    place = f"on host {shown.host}, in pool {shown.pool}"
                    return f"job {subject} runs {place}: queuepool stack {subject} --on {shown.host}/{shown.pool}"
    return f"nothing runs here under the id, pid or pool {subject}"
