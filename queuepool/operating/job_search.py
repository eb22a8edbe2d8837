"""Finds one job, wherever it is: with a worker, in a queue, among the failed jobs, in quarantine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.shown_pools import RunningJob, ShownPool, running_jobs
from queuepool.errors import BadPayload, StoreDenied, StoreDown, StoreError, TableMissing
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState, moment_of
from queuepool.log.tracebacks import headline
from queuepool.operating.choice import Choice
from queuepool.operating.kept_steps import KeptStep, steps_of
from queuepool.operating.queues import known_queues
from queuepool.payload import strict_json
from queuepool.search.ended import EndedAttempt, attempts_of
from queuepool.search.filters import Filter
from queuepool.search.found import FoundJob
from queuepool.search.look import Look
from queuepool.search.running import holder_of, pools_of
from queuepool.settlement.endings import commands_of
from queuepool.stores.contract import Shelf, ShelfJob
from queuepool.stores.limits import ParkedJob
from queuepool.stores.records import Quarantined
from queuepool.unix.escape import counted, first_of

#: entries of a quarantine that are read, and names of queues that are listed
_MOST, _MOST_NAMES = 1000, 10
#: bytes of a payload in quarantine that is read for its id
_MOST_READ = 64 * 1024
#: why something was not searched
_NO_TIME = "there was no time"
_SHELVES: Mapping[Shelf, str] = {"ready": "queued", "delayed": "delayed", "reserved": "reserved"}
#: where a job runs, or at which key of a limit it waits, behind how many; beyond what its state holds
NOWHERE: Mapping[str, Any] = {"pool": "", "running": None, "time_left": None, "limit": None, "before": None}
#: what is known of a job, with ``found``: where
Facts = dict[str, Any]


class JobSearch:
    """Looks for jobs without a stored state: with a worker, in a queue, among the failed jobs, in quarantine."""

    def __init__(
        self,
        choice: Choice,
        queue: Queue,
        runtimes: Sequence[RuntimeDir],
        *,
        within: float = math.inf,
        in_payloads: bool = True,
        queues: Callable[[], list[str]] | None = None,
    ) -> None:
        """``runtimes``: of this connection's pools on this host.

        ``within``: seconds to search all queues, and as many for all quarantines, and for records.
        ``in_payloads``: whether an id may be found anywhere in a payload in quarantine: who may not see these could
        find out letter by letter what is in them. ``queues``: finds the names of those to search, if not the store.
        """
        self._within = within
        self._in_payloads = in_payloads
        self._runtimes = runtimes
        self._connection = queue.settings
        self._stores = queue.stores
        self._known_queues = queues or partial(known_queues, choice, self._connection, self._stores)
        #: what could not be searched, and why
        self._refused: dict[str, str] = {}
        self._pools: set[str] = set()
        self._queues: list[str] = []
        #: what was found in a queue, among the failed jobs or in quarantine, or as an attempt that has ended
        self.job: FoundJob | None = None
        #: whether there was not the time to read all records of attempts
        self.is_cut = False

    def find(self, job_id: str) -> Facts | None:
        """What is known of it. Raises ``StoreDown`` if the jobs' store is away; the rest is searched without any other.

        It is looked for in the order of its life, so that a job that moves on meanwhile is still met. Where it may run
        is searched twice, which takes no time; so is where it may have failed, if somebody waits.
        """
        self._queues = self._known_queues()
        early = [("failed jobs", self._failed)] if self._within < math.inf else []
        looks: list[tuple[str, Callable[[str], Facts | None]]] = [
            *early, ("pools", self._running), ("limits", self._parked), ("queues", self._waiting),
            ("limits", self._parked), ("pools", self._running),
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
        job = FoundJob.ended(last, commands_of(self._connection))
        self.job = job if job.payload else None  # else the record has its id and its name alone
        known = JobState(
            id=job_id, state=last.then or last.outcome, name=last.name, queue=last.queue, since=moment_of(last.ended),
            began=moment_of(last.began), host=last.host, worker=last.worker, pid=last.pid, error=last.error,
        )  # fmt: skip
        about: Facts = {"attempts": last.attempts, "pool": last.pool, "found": "the attempts that have ended"}
        return {**asdict(known), **about}

    def with_attempts(self, found: Facts) -> Facts:
        """This, as ``ended`` the attempts at it that are kept, and as ``steps`` the steps."""
        queues = [found["queue"]] if found["queue"] else self._queues
        return {**found, "ended": self._attempts(found["id"], queues), "steps": self._steps(found["id"])}

    def _steps(self, job_id: str) -> list[KeptStep]:
        try:
            return steps_of(self._stores, job_id)
        except StoreError as error:  # a database may have no table for them, as no job has steps
            if _is_away(error):
                raise
            return []

    def _attempts(self, job_id: str, queues: Sequence[str]) -> list[EndedAttempt]:
        until = time.monotonic() + self._within
        try:
            return attempts_of(self._stores, queues, job_id, until)
        except StoreError as error:  # some user may not read them, or a key has the wrong type
            if _is_away(error):
                raise
            self._refused["attempts"] = str(error)
            return []
        finally:
            self.is_cut = time.monotonic() >= until

    def place_of(self, state: JobState) -> Facts:
        """What the state of a tracked job lacks: where it runs, or for which limit it waits; empty if unknown."""
        with suppress(StoreError):
            if state.state in ("queued", "released"):
                one = self._stores.limits.find(state.queue, state.id)
                return {"state": "parked", **place_in_line(one)} if one else {}
            found = self._running(state.id) if state.state == "running" else None
            return {key: found[key] for key in ("pool", "running", "time_left")} if found else {}
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
        return pools_of(self._runtimes, self._stores)

    def _waiting(self, job_id: str) -> Facts | None:
        look, until = Look(self._stores, Filter(id=job_id)), time.monotonic() + self._within
        for number, queue in enumerate(self._queues):
            if number and time.monotonic() >= until:
                self._refused[counted(len(self._queues) - number, "further queue")] = _NO_TIME
                return None
            try:
                found = self._first(look.waiting(queue, tuple(_SHELVES)).pages(), queue, until)
            except StoreDown:
                raise
            except StoreDenied as error:
                self._refused[f"queue {queue}"] = str(error)
            except StoreError:  # a key of the wrong type
                continue
            else:
                if found:
                    self.job = found
                    return self._shelved(found)
        return None

    def _first(self, pages: Iterable[list[FoundJob]], queue: str, until: float) -> FoundJob | None:
        for page in pages:
            if page:
                return page[0]
            if time.monotonic() >= until:
                self._refused[f"the end of queue {queue}"] = "it is too long"
                return None
        return None

    def _parked(self, job_id: str) -> Facts | None:
        """Among those that wait for a place of a limit."""
        with suppress(TableMissing):  # the database was made before there were limits
            for queue in self._queues:
                if one := self._stores.limits.find(queue, job_id):
                    self.job = FoundJob.parked(one, queue, commands_of(self._connection))
                    found = f"the jobs of queue {queue} that wait for a place of a limit"
                    known = JobState(id=job_id, state="parked", name=self.job.name, queue=queue)
                    about = {"pushed": moment_of(self.job.pushed), "attempts": self.job.attempts or None}
                    return {**asdict(known), **about, "found": found, **place_in_line(one)}
        return None

    def _shelved(self, job: FoundJob) -> Facts:
        shelf, found = job.where, f"the {job.state} jobs of queue {job.queue}"
        assert isinstance(shelf, ShelfJob)
        known = JobState(
            id=job.id, state=_SHELVES[shelf.shelf], name=job.name, queue=job.queue, pushed=moment_of(job.pushed),
            due=moment_of(shelf.at),
        )  # fmt: skip
        holder = holder_of(self._runtimes, shelf) if shelf.shelf == "reserved" else None
        place = holder._asdict() if holder else {}
        if shelf.shelf == "reserved" and not shelf.tag:
            found += ", with a worker of Laravel"
        # A database counts attempts in a column of their own; 0 is what was never begun.
        return {**asdict(known), **place, "attempts": job.attempts or None, "found": found}

    def _failed(self, job_id: str) -> Facts | None:
        record = self._stores.failed.get(job_id)
        if record is None:
            return None
        self.job = FoundJob.failed(record, commands_of(self._connection))
        about: Facts = {"name": record.name, "queue": record.queue, "error": headline(record.exception)}
        known = asdict(JobState(id=job_id, state="failed", since=moment_of(record.failed_at), **about))
        return {**known, "attempts": record.attempts, "found": "the failed jobs"}

    def _quarantined(self, job_id: str) -> Facts | None:
        """A payload that has this id somewhere: it could not be read as a job."""
        until = time.monotonic() + self._within
        for number, queue in enumerate(self._queues):
            if number and time.monotonic() >= until:
                self._refused["the quarantine of " + counted(len(self._queues) - number, "further queue")] = _NO_TIME
                return None
            for entry in islice(self._stores.records.quarantined(queue), _MOST):
                if self._is_of(job_id, entry):
                    self.job = FoundJob.quarantined(entry, commands_of(self._connection))
                    about: Facts = {"queue": queue, "since": moment_of(entry.at), "error": entry.reason}
                    known = asdict(JobState(id=job_id, state="quarantined", **about))
                    return {**known, "attempts": None, "found": f"the quarantine of queue {queue}, entry {entry.id}"}
        return None

    def _is_of(self, job_id: str, entry: Quarantined) -> bool:
        if self._in_payloads:
            return job_id == entry.id or job_id.encode("utf-8", "replace") in entry.payload
        return job_id in (entry.id, *_ids_in(entry.payload))


def place_in_line(one: ParkedJob) -> Facts:
    """At which key of a limit it waits, and how many of its line are before it."""
    return {"limit": one.key, "before": one.before}


def _ids_in(payload: bytes) -> tuple[Any, ...]:
    """What a payload calls its ids, if it is an object of JSON at all, and no larger than takes a moment to read.

    Whatever else is in it makes no difference, not even in time.
    """
    if len(payload) > _MOST_READ:
        return ()
    try:
        found = strict_json.read_object(payload)
    except BadPayload:
        return ()
    return found.get("uuid"), found.get("id")


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
