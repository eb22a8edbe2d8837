"""One worker without a master."""

from __future__ import annotations

from typing import Any

import click

from queuepool.cli.options import WORKER, Where, located, option, parsed
from queuepool.config import values


@click.command()
@located(*WORKER)
@click.option("--once", is_flag=True, help="Leave after one job; if there is none, after --sleep")
@click.option("--stop-when-empty", is_flag=True, help="Leave if there is no job")
@option(
    "--stop-when-empty-for",
    metavar="SECONDS",
    type=parsed(values.seconds),
    default=0.0,
    help="Leave after this time without a job; 0 = never  [default: 0]",
)
@click.option("--brief", is_flag=True, hidden=True, help="Log only the jobs: for listen, which starts one for each")
def work(where: Where, brief: bool, **ends: Any) -> int:
    """Run one worker in the foreground, without a master

    Its leases are not renewed: a timeout that is not below retry_after is lowered. A job past its timeout ends the
    worker by signal 14 and is retried when its lease ends.
    """
    pool = where.pool()
    from queuepool.pool.lone_worker import work_alone  # imported here: it loads the store's library

    return work_alone(pool, brief=brief, **ends)
