"""What is known about a schedule: its last run and how that ended, what it has missed, and what stands in its way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from queuepool.board.from_workers import JobSchedule, published_schedules
from queuepool.board.pauses import pause_words
from queuepool.board.runtime_dir import RuntimeDir
from queuepool.board.status import iso
from queuepool.config.settings import ConnectionSettings, PoolSettings, ScheduleSettings
from queuepool.config.timetable import NEVER
from queuepool.errors import ConfigError, NotRunning, StoreDenied, StoreError
from queuepool.jobs.client import Queue
from queuepool.jobs.following import JobState, moment_of
from queuepool.log.tracebacks import headline
from queuepool.operating.choice import Choice
from queuepool.operating.queues import QueueMark, Tell, marks_of
from queuepool.steward.schedule import ScheduledJob
from queuepool.stores.contract import NewJob
from queuepool.stores.due_log import DueLine, DueLog
from queuepool.stores.values import Mark

#: seconds that a mark may be ahead of the clock, and behind it, since they are read one after the other
_AHEAD, _BEHIND = 60.0, 10.0
#: earlier jobs that are looked at, if the last one is not over
_LOOKED_AT = 3
#: how errors about a job that no worker knows begin, with or without the module of their class
_UNKNOWN = ("UnknownJob:", "queuepool.errors.UnknownJob:")
#: why a due time was missed, in words
_REASONS = {
    "late": "nothing could push it in time", "overlap": "its last job was still queued or running",
    "paused": "it was paused", "maintenance": "maintenance mode",
}  # fmt: skip


@dataclass(frozen=True)
class KnownSchedule:
    """One schedule, as its store and the pools show it at ``now`` (the store's Unix seconds)."""

    job: ScheduledJob
    now: float
    mark: Mark | None
    lines: Sequence[DueLine]
    #: the state of its last job, and of the last one that is over; ``None`` if none is kept
    run: JobState | None
    ended: JobState | None
    is_paused: bool
    #: since when and by whom, if that is known
    pause: tuple[float, str] | None
    is_held: bool
    queue: QueueMark

    @property
    def settings(self) -> ScheduleSettings:
        return self.job.settings

    @property
    def state(self) -> str:
        """In one word, or two: the worst."""
        return next(self._states())

    def _states(self) -> Iterator[str]:
        if self.is_paused:
            yield "paused"
        if self.queue.paused:
            yield "queue paused"
        if self.mark and self.mark.settled > self.now + _AHEAD:
            yield "clock ahead"
        if self._tells_of_unknown:
            yield "unknown job"
        if self.ended and self.ended.state == "failed":
            yield "failing"
        if self.mark and self.job.timetable.next_after(self.mark.settled) < self.now - _BEHIND:
            yield "late"
        if not self.mark:
            yield "new"  # no pool has seen it yet
        if self.is_held:
            yield "held"  # by its last job, which is queued or running
        # An object may be for workers of Laravel, which cannot be seen.
        if self.queue.served is False and not self.settings.object:
            yield "unserved"
        yield "ok"

    @property
    def _tells_of_unknown(self) -> str:
        """The error of a worker that does not know its job; empty if there is none."""
        last = self.run if self.run and self.run.error else self.ended
        return last.error if last and last.error.startswith(_UNKNOWN) else ""

    @property
    def next(self) -> int | None:
        """Its next due time."""
        found = self.job.timetable.next_after(max(self.now, self.mark.settled if self.mark else 0))
        return None if found == NEVER else found

    @cached_property
    def last_push(self) -> DueLine | None:
        """The last due time that got a job."""
        at = self.mark.pushed if self.mark else None
        noted = (line for line in reversed(self.lines) if line.id and line.due == at)
        return next(noted, DueLine(at, 0.0, self.job.id_at(at)) if at else None)

    @property
    def missed(self) -> list[DueLine]:
        """The due times that got none, the latest last."""
        return [line for line in self.lines if line.reason]

    def row(self) -> dict[str, Any]:
        """Its row in the list."""
        one, following, last = self.settings, self.next, self.mark.pushed if self.mark else None
        return {
            "schedule": one.name,
            "when": one.rule,
            "job": one.pushes,
            "queue": one.queue,
            "last": self._local(last),
            "next": self._local(following),
            "next_utc": datetime.fromtimestamp(following, UTC).isoformat() if following else None,
            "state": self.state,
        }

    def facts(self) -> dict[str, Any]:
        """All that is known about it."""
        last, run, ended = self.last_push, self.run, self.ended
        return {
            **self.row(),
            "paused_since": iso(self.pause[0]) if self.pause else None,
            "paused_by": (self.pause[1] or None) if self.pause else None,
            "last_pushed": iso(last.at) if last and last.at else None,
            "last_pushed_by": (last.host or None) if last else None,
            "last_job": last.id if last else None,
            "last_state": run.state if run else None,
            "ended_job": ended.id if ended else None,
            "ended_state": ended.state if ended else None,
            "ended_began": _iso(ended.began) if ended else None,
            "ended_at": _iso(ended.since) if ended else None,
            "ended_seconds": _seconds_of(ended) if ended else None,
            "ended_attempts": ended.attempts if ended else None,
            "ended_host": (ended.host or None) if ended else None,
            "ended_error": (ended.error or None) if ended else None,
            "missed": [self._missed(line) for line in self.missed],
        }

    def words(self, told: Callable[[str], str] = str) -> Iterator[str]:
        """What explains its state, one line each; ``told``: as much of an error as may be shown."""
        states = set(self._states())
        if self.is_paused:
            since = pause_words(iso(self.pause[0]), self.pause[1]) if self.pause else ""
            yield f"it is paused, or maintenance mode is on{since}: queuepool schedule resume {self.settings.name}"
        yield from self.queue.words(self.settings.queue)
        if self._tells_of_unknown:
            yield f"the worker that took it does not know its job: {told(self._tells_of_unknown)}"
        if "clock ahead" in states:
            yield f"the store's clock was ahead; to end this: queuepool schedule forget {self.settings.name}"
        if "late" in states:
            yield "a due time has passed and no pool has pushed it: is one of its connection running?"
        if "held" in states:
            free = f"queuepool locks free '{self.job.lock}'"
            yield f"its last job is queued or running, and overlap is no; if it is gone: {free}"
        if self.last_push and not self.run:
            yield "of the last job nothing is kept: it waits, was run by a worker of Laravel, or its time is over"

    def _missed(self, line: DueLine) -> dict[str, Any]:
        reason = _REASONS.get(line.reason, line.reason)
        return {"first": self._local(line.first), "last": self._local(line.due), "reason": reason}

    def _local(self, at: int | None) -> str | None:
        return self.job.timetable.local(at).isoformat() if at else None


def known_schedules(
    choice: Choice, connection: ConnectionSettings, several: Sequence[ScheduleSettings], tell: Tell
) -> list[KnownSchedule]:
    """The schedules of one connection with all that is known about them. Raises ``StoreError``."""
    with closing(Queue(connection, by_hand=True)) as queue:
        return schedules_on(choice, queue, several, tell)


def schedules_on(choice: Choice, queue: Queue, several: Sequence[ScheduleSettings], tell: Tell) -> list[KnownSchedule]:
    """The same for a connection that is open."""
    jobs = [ScheduledJob(one) for one in several]
    now, marks = queue.stores.queue.now(), queue.stores.values.marks()
    control = queue.stores.control.read((), [one.name for one in several])
    held = _held(queue, [job.lock for job in jobs if job.lock])
    queues = marks_of(choice, queue, list(dict.fromkeys(one.queue for one in several)), tell)
    log = DueLog(queue.stores.values)
    found = []
    for job in jobs:
        name, mark = job.settings.name, marks.get(job.settings.name)
        lines = _lines(log, name)
        run, ended = _runs(queue, job, mark, lines)
        is_paused = control.down or name in control.schedules
        pause = control.schedule_pauses.get(name) or control.schedule_pauses.get("") or control.down_by
        about = is_paused, pause, job.lock in held, queues[job.settings.queue]
        found.append(KnownSchedule(job, now, mark, lines, run, ended, *about))
    return found


def push_now(queue: Queue, settings: ScheduleSettings) -> tuple[str, str]:
    """Push its job now. Returns the id, and an empty text; or the lock that its last job holds, if nothing was pushed.

    Raises ``StoreError``.
    """
    store = queue.stores.queue
    job_id, due = ScheduledJob(settings).by_hand(store.now())
    if not store.push(due.queue, [NewJob(due.payload)], lock=due.lock) and due.lock:
        return job_id, due.lock.name
    return job_id, ""


def in_force(pool: PoolSettings) -> list[JobSchedule] | None:
    """What the local pool's workers have declared; ``None`` if it does not run."""
    try:
        return published_schedules(RuntimeDir(pool).board())
    except (NotRunning, ConfigError):
        return None


def _lines(log: DueLog, name: str) -> list[DueLine]:
    with suppress(StoreDenied):  # a user who may not read them
        return log.last(name)
    return []


def _runs(
    queue: Queue, job: ScheduledJob, mark: Mark | None, lines: Sequence[DueLine]
) -> tuple[JobState | None, JobState | None]:
    """The state of its last job, and that of the last one that is over, among the last few."""
    if not (mark and mark.pushed):
        return None, None
    last = _run(queue, job.id_at(mark.pushed))
    if last and last.is_over:
        return last, last
    earlier = [line.id for line in reversed(lines) if line.id and line.due < mark.pushed][:_LOOKED_AT]
    states = (_run(queue, job_id) for job_id in earlier)
    return last, next((state for state in states if state and state.is_over), None)


def _run(queue: Queue, job_id: str) -> JobState | None:
    """How this job ended, or where it is."""
    with suppress(StoreError):  # damaged, or not ours to read
        if state := queue.job(job_id):
            return state
    if record := queue.stores.failed.get(job_id):
        about: dict[str, Any] = {"name": record.name, "error": headline(record.exception)}
        return JobState(id=job_id, state="failed", since=moment_of(record.failed_at), **about)
    return None


def _held(queue: Queue, names: Sequence[str]) -> Collection[str]:
    """Which of these locks are held; none for a user who may not read them."""
    try:
        return queue.stores.locks[queue.settings.url].owners(names)
    except StoreDenied:
        return ()


def _iso(moment: datetime | None) -> str | None:
    return iso(moment.timestamp()) if moment else None


def _seconds_of(run: JobState) -> float | None:
    """How long the last attempt took, once it is over."""
    return round((run.since - run.began).total_seconds(), 3) if run.is_over and run.began and run.since else None
