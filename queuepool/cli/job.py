"""What is known of one job: its stored state, or where it is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from typing import Any

import click

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.shown_pools import RunningJob, ShownPool, running_jobs
from queuepool.board.status import iso
from queuepool.cli import output
from queuepool.cli.attempts import facts_of, lines_of
from queuepool.cli.local import runtime_of
from queuepool.cli.options import JSON, PLACE, TEXT, Where, located, option, parsed
from queuepool.cli.queues import known_queues
from queuepool.cli.reading import Reading
from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.errors import NotTracked, StoreDenied, StoreDown, StoreError
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState, moment_of
from queuepool.log.tracebacks import headline
from queuepool.search.ended import EndedAttempt, attempts_of
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.search.running import holder_of, pools_of
from queuepool.stores.contract import Shelf, ShelfJob
from queuepool.unix.escape import first_of
from queuepool.unix.exit_codes import FAILED, OK

#: entries of a quarantine that are read, and names of queues that are listed
_MOST, _MOST_NAMES = 1000, 10
_SHELVES: Mapping[Shelf, str] = {"ready": "queued", "delayed": "delayed", "reserved": "reserved"}
#: where a job runs, beyond what its state holds
_NOWHERE: Mapping[str, Any] = {"pool": "", "running": None, "time_left": None}
#: what is known of a job, with ``found``: where
Facts = dict[str, Any]


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
    shown of each job: who ran it, when, and how it ended. Exits with 1 if the job is not found; with --wait, also if it
    does not end well or in time, or is not tracked.
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
            search = JobSearch(self._where, queue)
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
    facts = {key: _plain(value) for key, value in {**_NOWHERE, **state}.items()}
    if as_json:
        output.document(output.versioned(facts | {"ended": [facts_of(one) for one in attempts]}))
        return
    for key, value in facts.items():
        if value not in (None, ""):
            output.say(f"{key}: {_text(value)}")
    begun = (state["attempts"] or 0) - (state["state"] in ("running", "reserved"))
    for line in lines_of(attempts, begun):
        output.say(line)


def _plain(value: Any) -> Any:
    return iso(value.timestamp()) if isinstance(value, datetime) else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class JobSearch:
    """Looks for jobs without a stored state: with a worker, in a queue, among the failed jobs, in quarantine."""

    def __init__(self, where: Where, queue: Queue) -> None:
        self._where = where
        self._connection = queue.settings
        self._stores = queue.stores
        #: what could not be searched, and why
        self._refused: dict[str, str] = {}
        self._pools: set[str] = set()
        self._queues: list[str] = []

    def find(self, job_id: str) -> Facts | None:
        """What is known of it. Raises ``StoreDown`` if the jobs' store is away; the rest is searched without any other.

        It is looked for in the order of its life, so that a job that moves on meanwhile is still met. Where it may run
        is searched twice, which takes no time.
        """
        self._queues = known_queues(self._where, self._connection, self._stores)
        looks: list[tuple[str, Callable[[str], Facts | None]]] = [
            ("pools", self._running), ("queues", self._waiting), ("pools", self._running),
            ("failed jobs", self._failed), ("quarantine", self._quarantined),
        ]  # fmt: skip
        for what, look in looks:
            try:
                if found := look(job_id):
                    return found
            except StoreError as error:
                if _is_away(error):
                    raise
                self._refused[what] = str(error)
        return None

    def ended(self, job_id: str) -> Facts | None:
        """What the last attempt that is kept says of a job that is found nowhere else."""
        if not (attempts := self._attempts(job_id, self._queues)):
            return None
        last = attempts[-1]
        known = JobState(
            id=job_id, state=last.then or last.outcome, name=last.name, queue=last.queue, since=moment_of(last.ended),
            began=moment_of(last.began), host=last.host, worker=last.worker, pid=last.pid, error=last.error,
        )  # fmt: skip
        about: Facts = {"attempts": last.attempts, "pool": last.pool, "found": "the attempts that have ended"}
        return {**asdict(known), **about}

    def with_attempts(self, found: Facts) -> Facts:
        """This, and as ``ended`` the attempts at it that are kept."""
        queues = [found["queue"]] if found["queue"] else self._queues
        return {**found, "ended": self._attempts(found["id"], queues)}

    def _attempts(self, job_id: str, queues: Sequence[str]) -> list[EndedAttempt]:
        try:
            return attempts_of(self._stores, queues, job_id)
        except StoreError as error:  # some user may not read them, or a key has the wrong type
            if _is_away(error):
                raise
            self._refused["attempts"] = str(error)
            return []

    def place_of(self, state: JobState) -> Facts:
        """What the state of a tracked, running job lacks; empty if the job's pool is unknown."""
        with suppress(StoreError):
            found = self._running(state.id) if state.state == "running" else None
            return {key: found[key] for key in _NOWHERE} if found else {}
        return {}

    @property
    def looked_at(self) -> str:
        """What the last search covered, in words."""
        runs = f"it runs in no pool known here ({', '.join(sorted(self._pools)) or 'none'})"
        names = first_of(self._queues, _MOST_NAMES)
        refused = "".join(f"; not searched: {what} ({why})" for what, why in self._refused.items())
        return f"{runs}, it is not among the failed jobs, in quarantine or in queues {names}{refused}"

    def _running(self, job_id: str) -> Facts | None:
        """In a worker: of this host, by its board; of any other, by its pool's last notice."""
        for shown in self._all_pools():
            self._pools.add(shown.name)
            for one in running_jobs([shown]).values():
                if one.job.id == job_id:
                    with suppress(ValueError):  # a damaged notice's time
                        return _run(one)
        return None

    def _all_pools(self) -> Iterator[ShownPool]:
        return pools_of(self._runtimes(), self._stores)

    def _runtimes(self) -> list[RuntimeDir]:
        pools = (pool for pool in self._where.pools() if pool.connection == self._connection)
        return [runtime_of(self._where, pool) for pool in pools]

    def _waiting(self, job_id: str) -> Facts | None:
        look = Look(self._stores, Filter(id=job_id))
        for queue in self._queues:
            try:
                found = next(look.waiting(queue, tuple(_SHELVES)).jobs(), None)
            except StoreDown:
                raise
            except StoreDenied as error:
                self._refused[f"queue {queue}"] = str(error)
            except StoreError:  # a key of the wrong type
                continue
            else:
                if found:
                    return self._shelved(found)
        return None

    def _shelved(self, job: FoundJob) -> Facts:
        shelf, found = job.where, f"the {job.state} jobs of queue {job.queue}"
        assert isinstance(shelf, ShelfJob)
        known = JobState(
            id=job.id, state=_SHELVES[shelf.shelf], name=job.name, queue=job.queue, pushed=moment_of(job.pushed),
            due=moment_of(shelf.at),
        )  # fmt: skip
        holder = holder_of(self._runtimes(), shelf) if shelf.shelf == "reserved" else None
        place = holder._asdict() if holder else {}
        if shelf.shelf == "reserved" and not shelf.tag:
            found += ", with a worker of Laravel"
        # A database counts attempts in a column of their own; 0 is what was never begun.
        return {**asdict(known), **place, "attempts": job.attempts or None, "found": found}

    def _failed(self, job_id: str) -> Facts | None:
        record = self._stores.failed.get(job_id)
        if record is None:
            return None
        about: Facts = {"name": record.name, "queue": record.queue, "error": headline(record.exception)}
        known = asdict(JobState(id=job_id, state="failed", since=moment_of(record.failed_at), **about))
        return {**known, "attempts": record.attempts, "found": "the failed jobs"}

    def _quarantined(self, job_id: str) -> Facts | None:
        """A payload that has this id somewhere: it could not be read as a job."""
        mark = job_id.encode("utf-8", "replace")
        for queue in self._queues:
            for entry in islice(self._stores.records.quarantined(queue), _MOST):
                if job_id == entry.id or mark in entry.payload:
                    about: Facts = {"queue": queue, "since": moment_of(entry.at), "error": entry.reason}
                    known = asdict(JobState(id=job_id, state="quarantined", **about))
                    return {**known, "attempts": None, "found": f"the quarantine of queue {queue}, entry {entry.id}"}
        return None


def _run(one: RunningJob) -> Facts:
    """A job that a worker runs. Raises ``ValueError`` if its start is not a time."""
    process, job = one.process, one.job
    began = datetime.fromisoformat(job.since)
    state = JobState(
        id=job.id,
        state="running",
        name=job.name,
        queue=job.queue,
        attempts=job.attempt,
        since=began,
        began=began,
        host=one.shown.host,
        worker=process.number,
        pid=process.pid,
        progress=job.progress,
        note=job.note or "",
    )
    place = {"pool": one.shown.pool, "running": job.running, "time_left": job.time_left}
    return {**asdict(state), **place, "found": one.shown.found}


def _is_away(error: StoreError) -> bool:
    """Whether the jobs' own store is away, so that nothing can be searched."""
    return isinstance(error, StoreDown) and not isinstance(error, StoreDenied) and not error.store
