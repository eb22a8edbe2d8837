"""One worker without a master."""

from __future__ import annotations

import click

from queuepool.cli.flags import WORKER
from queuepool.cli.options import Where, located


@click.command()
@located(*WORKER)
@click.option("--once", is_flag=True, help="Leave after one job; if there is none, after --sleep")
@click.option("--stop-when-empty", is_flag=True, help="Leave if there is no job")
@click.option("--brief", is_flag=True, hidden=True, help="Log only the jobs: for listen, which starts one for each")
def work(where: Where, once: bool, stop_when_empty: bool, brief: bool) -> int:
    """Run one worker in the foreground, without a master

    Its leases are not renewed: a timeout that is not below retry_after is cut. A job past its timeout ends the worker
    by signal 14 and is retried when its lease ends.
    """
    pool = where.pool()
    from queuepool.pool.lone_worker import work_alone  # imported here: it loads the store's library

    return work_alone(pool, once=once, stop_when_empty=stop_when_empty, brief=brief)
