"""What is known of one job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.job_search import Facts, JobSearch
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import NotTracked
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState
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
    reading, look = Reading(where.connections()), _Look(where, job_id, wait, timeout)
    try:
        found = next(reading.each(look.on), None)
    except TimeoutError as error:
        output.complain(str(error))
        return FAILED
    if found is None:
        output.complain("; ".join([str(NotTracked(job_id)), *look.misses]))
        return FAILED
    _show(found, as_json)
    if wait and not look.is_tracked:
        output.complain(f"job {job_id} is not tracked: its end cannot be waited for")
    return FAILED if wait and not (look.is_tracked and found["state"] == "done") else OK


class _Look:
    """Looks for one job, on one connection after the other."""

    def __init__(self, where: Where, job_id: str, wait: bool, timeout: float | None) -> None:
        self._where = where
        self._job_id = job_id
        self._wait = wait
        self._timeout = timeout
        #: whether what was found is the state of a tracked job
        self.is_tracked = False
        #: what was looked at in vain, in words
        self.misses: list[str] = []

    def on(self, connection: ConnectionSettings) -> Iterator[Facts]:
        """What is known of it there, if anything. Raises ``TimeoutError`` where it is waited for."""
        with closing(Queue(connection, by_hand=True)) as queue:
            if state := self._state(queue):
                self.is_tracked = True
                yield {**asdict(state), "found": "its state"}
                return
            search = JobSearch(self._where, queue)
            if found := search.find(self._job_id):
                yield found
            else:
                self.misses.append(search.looked_at)

    def _state(self, queue: Queue) -> JobState | None:
        try:
            return queue.wait(self._job_id, self._timeout) if self._wait else queue.job(self._job_id)
        except NotTracked:
            return None


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
