"""What is known of one tracked job."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.flags import CONNECTION
from queuepool.cli.options import JSON, TEXT, Where, located, option, parsed
from queuepool.config import values
from queuepool.errors import NotTracked
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState
from queuepool.unix.exit_codes import FAILED, OK


@click.command()
@located(*CONNECTION)
@click.argument("job_id", metavar="ID", type=TEXT)
@click.option("--wait", is_flag=True, help="Wait until it is over; exit with 1 unless it is done")
@option("--timeout", metavar="SECONDS", type=parsed(values.seconds), help="Wait no longer than this")
@JSON
def job(where: Where, job_id: str, wait: bool, timeout: float | None, as_json: bool) -> int:
    """Show the state of a tracked job, or wait until it is over

    Exits with 1 if nothing is known of it. With --wait, also if it is not done in the end, or not in time.
    """
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait")
    with closing(Queue(where.connection(), by_hand=True)) as queue:
        try:
            state = queue.wait(job_id, timeout) if wait else queue.job(job_id)
        except TimeoutError as error:
            output.complain(str(error))
            return FAILED
        except NotTracked:
            state = None
    if state is None:
        output.complain(str(NotTracked(job_id)))
        return FAILED
    _show(state, as_json)
    return FAILED if wait and state.state != "done" else OK


def _show(state: JobState, as_json: bool) -> None:
    facts = {key: _plain(value) for key, value in asdict(state).items()}
    if as_json:
        output.document(facts)
        return
    for key, value in facts.items():
        if value not in (None, ""):
            output.say(f"{key}: {_text(value)}")


def _plain(value: Any) -> Any:
    return iso(value.timestamp()) if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
