"""What is known of one job: its stored state, or where it is found."""

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
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located, option, parsed
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import NotTracked
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState
from queuepool.operating import kept_steps
from queuepool.operating.attempts import facts_of, lines_of
from queuepool.operating.job_search import NOWHERE, Facts, JobSearch
from queuepool.operating.kept_steps import KeptStep
from queuepool.search.ended import EndedAttempt
from queuepool.unix.exit_codes import FAILED, OK


@click.command()
@located(*PLACE)
@click.argument("job_id", metavar="ID", type=TEXT)
@click.option("--wait", is_flag=True, help="Wait until a tracked job is over; exit with 1 unless it is done")
@option("--timeout", metavar="SECONDS", type=parsed(values.seconds), help="Wait no longer than this")
@JSON
def job(where: Where, job_id: str, wait: bool, timeout: float | None, as_json: bool) -> int:
    """Show where a job is, and the state of a tracked one; or wait until that is over

    A job that is not tracked is looked for in the pools of all hosts, in each queue, among the failed jobs and in
    quarantine; once it is done, nothing is left of it but the attempts, if the pool keeps them (keep_done). Those are
    shown of each job: who ran it, when, and how it ended; and the steps that are kept of it. Exits with 1 if the job is
    not found; with --wait, also if it does not end well or in time, or is not tracked.
    """
    if timeout is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
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
        output.complain(f"job {job_id} is not tracked: cannot wait for its end")
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
        #: where it was not found, in words
        self.misses: list[str] = []

    def on(self, connection: ConnectionSettings) -> Iterator[Facts]:
        """What is known of it there, if anything. Raises ``TimeoutError`` if it waits."""
        with closing(Queue(connection, by_hand=True)) as queue:
            pools = (pool for pool in self._where.pools() if pool.connection == connection)
            search = JobSearch(self._where, queue, [runtime_of(self._where, pool) for pool in pools])
            if state := self._state(queue):
                self.is_tracked = True
                yield search.with_attempts({**asdict(state), **search.place_of(state), "found": "its state"})
            elif found := search.find(self._job_id) or search.ended(self._job_id):
                yield search.with_attempts(found)
            else:
                self.misses.append(search.looked_at)

    def _state(self, queue: Queue) -> JobState | None:
        try:
            return queue.wait(self._job_id, self._timeout) if self._wait else queue.job(self._job_id)
        except NotTracked:
            return None


def _show(state: Facts, as_json: bool) -> None:
    attempts: list[EndedAttempt] = state.pop("ended")
    steps: list[KeptStep] = state.pop("steps")
    facts = {key: _plain(value) for key, value in {**NOWHERE, **state}.items()}
    if as_json:
        lists = {"steps": [one.facts() for one in steps], "ended": [facts_of(one) for one in attempts]}
        output.document(output.versioned(facts | lists))
        return
    for key, value in facts.items():
        if value not in (None, ""):
            output.say(f"{key}: {_text(value)}")
    for line in kept_steps.lines_of(steps):
        output.say(line)
    begun = (state["attempts"] or 0) - (state["state"] in ("running", "reserved"))
    for line in lines_of(attempts, begun):
        output.say(line)


def _plain(value: Any) -> Any:
    return iso(value.timestamp()) if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
