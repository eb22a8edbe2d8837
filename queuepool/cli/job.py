"""What is known of one job."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.flags import PLACE
from queuepool.cli.job_search import Facts, JobSearch
from queuepool.cli.options import JSON, TEXT, Where, located, option, parsed
from queuepool.config import values
from queuepool.errors import NotTracked
from queuepool.jobs.client import Queue
from queuepool.unix.exit_codes import FAILED, OK


@click.command()
@located(*PLACE)
@click.argument("job_id", metavar="ID", type=TEXT)
@click.option("--wait", is_flag=True, help="Wait until a tracked job is over; exit with 1 unless it is done")
@option("--timeout", metavar="SECONDS", type=parsed(values.seconds), help="Wait no longer than this")
@JSON
def job(where: Where, job_id: str, wait: bool, timeout: float | None, as_json: bool) -> int:
    """Show where a job is, and the state of a tracked one; or wait until that is over

    One that is not tracked is looked for in the pools of all hosts, at the head of each queue (1,000 ready, delayed
    and reserved jobs), among the failed jobs and in quarantine. Nothing is left of one that is done. Exits with 1 if
    nothing is known of it. With --wait, also if it is not done in the end, not in time, or not tracked.
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
            return _look_for(JobSearch(where, queue), job_id, wait, as_json)
    _show({**asdict(state), "found": "its state"}, as_json)
    return FAILED if wait and state.state != "done" else OK


def _look_for(search: JobSearch, job_id: str, wait: bool, as_json: bool) -> int:
    """Show where it is, though it has no state."""
    found = search.find(job_id)
    if found is None:
        output.complain(f"{NotTracked(job_id)}; {search.looked_at}")
        return FAILED
    _show(found, as_json)
    if wait:
        output.complain(f"job {job_id} is not tracked: its end cannot be waited for")
    return FAILED if wait else OK


def _show(state: Facts, as_json: bool) -> None:
    facts = {key: _plain(value) for key, value in state.items()}
    if as_json:
        output.document(output.versioned(facts))
        return
    for key, value in facts.items():
        if value not in (None, ""):
            output.say(f"{key}: {_text(value)}")


def _plain(value: Any) -> Any:
    return iso(value.timestamp()) if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
