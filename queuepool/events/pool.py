"""Events of workers, of pools and of their stores, alerts and schedules."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from queuepool.events.base import Event


@dataclass(frozen=True, slots=True)
class Looping(Event):
    """The worker begins a round; a listener that returns ``False`` makes it wait for ``sleep`` seconds."""

    words: ClassVar[str] = "looping"
    level: ClassVar[int] = logging.DEBUG

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStarting(Event):
    """The modules are imported; the worker is about to reserve its first job."""

    words: ClassVar[str] = "worker starting"
    level: ClassVar[int] = logging.INFO

    worker: int


@dataclass(frozen=True, slots=True)
class WorkerStopping(Event):
    """The worker exits cleanly with ``code`` after ``jobs`` jobs; ``reason`` is a value of ``limits.StopReason``.

    If that is ``memory``, ``grew_most`` is the job in whose runs the worker grew most, by ``grew_mb`` MB in all.
    """

    words: ClassVar[str] = "worker stopping"
    level: ClassVar[int] = logging.INFO

    worker: int
    reason: str
    code: int
    jobs: int
    grew_most: str = ""
    grew_mb: float | None = None


@dataclass(frozen=True, slots=True)
class StewardStopping(Event):
    """The steward exits cleanly; no event follows."""

    words: ClassVar[str] = "steward stopping"
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class WorkerPaused(Event):
    """The worker takes no more jobs; ``reason`` is ``signal`` or ``maintenance``."""

    words: ClassVar[str] = "worker paused"
    level: ClassVar[int] = logging.INFO

    reason: str


@dataclass(frozen=True, slots=True)
class WorkerContinued(Event):
    """The worker takes jobs again."""

    words: ClassVar[str] = "worker continued"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class ProcessDied(Event):
    """A process of the pool died unexpectedly; ``cause`` is the signal or exit code in words."""

    words: ClassVar[str] = "process died"
    level: ClassVar[int] = logging.WARNING

    role: str
    worker: int
    pid: int
    cause: str


@dataclass(frozen=True, slots=True)
class BootFailed(Event):
    """A worker (or, as number 0, the template that preloads them) could not import the user's modules.

    ``problem`` is the cause in one line; ``trace`` is empty when both are the same as the last time. A failure that
    ends the pool at its first boot is logged by the master and reaches no listener.
    """

    words: ClassVar[str] = "boot failed"
    level: ClassVar[int] = logging.ERROR

    worker: int
    trace: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PoolRestarting(Event):
    """A restart was broadcast; every worker will be replaced."""

    words: ClassVar[str] = "restart was broadcast"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class PoolScaled(Event):
    """A pool that scales by itself is to have ``after`` workers instead of ``before``; ``why`` in a few words.

    The master logs each change; of several within a second, this is the sum.
    """

    words: ClassVar[str] = "pool scaled"
    level: ClassVar[int] = logging.DEBUG

    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True)
class PoolPaused(Event):
    """These queues are paused for all hosts."""

    words: ClassVar[str] = "queues paused"
    level: ClassVar[int] = logging.INFO

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolContinued(Event):
    """These queues are no longer paused."""

    words: ClassVar[str] = "queues continued"
    level: ClassVar[int] = logging.INFO

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperatorActed(Event):
    """``by`` (``user@host``) has done ``verb`` to ``subject``: a line of the journal. Every pool on the store emits it.

    ``count``: to how many jobs or other things; ``at`` is aware, in UTC, by the store's clock.
    """

    words: ClassVar[str] = "an operator has acted"
    level: ClassVar[int] = logging.INFO

    by: str
    verb: str
    subject: str
    count: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class CommandRefused(Event):
    """A command from another host was not carried out; ``verb`` and ``by`` are empty if it could not be read."""

    words: ClassVar[str] = "command refused"
    level: ClassVar[int] = logging.WARNING

    verb: str
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class PoolLost(Event):
    """A pool on this store has published nothing for ``silent`` seconds and was not stopped; one other pool emits it.

    ``ran`` says in words what it ran then; ``id`` is its instance's.
    """

    words: ClassVar[str] = "pool lost"
    level: ClassVar[int] = logging.WARNING

    pool: str
    host: str
    id: str
    silent: float
    ran: str


@dataclass(frozen=True, slots=True)
class MaintenanceChanged(Event):
    """Maintenance mode began or ended."""

    words: ClassVar[str] = "maintenance"
    level: ClassVar[int] = logging.INFO

    down: bool


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """The store cannot be reached; emitted once, not for every try."""

    words: ClassVar[str] = "store lost, waiting for it"
    level: ClassVar[int] = logging.ERROR

    problem: str


@dataclass(frozen=True, slots=True)
class StoreStillLost(Event):
    """A store is still unavailable, for another reason than before; ``store`` as in ``SideStoreLost``, or empty."""

    words: ClassVar[str] = "store still away"
    level: ClassVar[int] = logging.ERROR

    store: str
    problem: str


@dataclass(frozen=True, slots=True)
class StoreRegained(Event):
    """The store answers again after ``outage`` seconds."""

    words: ClassVar[str] = "store regained"
    level: ClassVar[int] = logging.WARNING

    outage: float


@dataclass(frozen=True, slots=True)
class SideStoreLost(Event):
    """The failed store or the control store is unavailable; jobs continue to run."""

    words: ClassVar[str] = "store lost, the jobs go on without it"
    level: ClassVar[int] = logging.ERROR

    store: str
    problem: str


@dataclass(frozen=True, slots=True)
class SideStoreRegained(Event):
    """That store answers again after ``outage`` seconds."""

    words: ClassVar[str] = "store regained"
    level: ClassVar[int] = logging.WARNING

    store: str
    outage: float


@dataclass(frozen=True, slots=True)
class FailureUnrecorded(Event):
    """The failed store refuses records; ``count`` of them wait in the queue's store until it accepts them."""

    words: ClassVar[str] = "failed jobs cannot be recorded"
    level: ClassVar[int] = logging.ERROR

    count: int
    problem: str


@dataclass(frozen=True, slots=True)
class StoreRefused(Event):
    """The store refuses a queue (a key of the wrong type, say; the others go on), or forbids our user a command."""

    words: ClassVar[str] = "the store refuses"
    level: ClassVar[int] = logging.ERROR

    queue: str
    problem: str


@dataclass(frozen=True, slots=True)
class AlertEvent(Event):
    """The base of the events of one alert. ``kind`` is its key in ``[alerts]``; ``since`` is aware, in UTC.

    ``value`` and ``limit`` are seconds, counts, or shares from 0 to 1, by the kind. ``detail`` is what else is known:
    of a lost pool, which jobs it ran.
    """

    kind: str
    subject: str
    value: float
    limit: float
    since: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AlertRaised(AlertEvent):
    """A limit of ``[alerts]`` is reached."""

    words: ClassVar[str] = "alert raised"
    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True)
class AlertCleared(AlertEvent):
    """The value is below four fifths of the limit again."""

    words: ClassVar[str] = "alert cleared"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class AlertUnsent(Event):
    """A notice could not be sent ``by`` ``exec`` or ``webhook``; a problem is emitted once, until a notice is sent."""

    words: ClassVar[str] = "notice of an alert not sent"
    level: ClassVar[int] = logging.ERROR

    by: str
    kind: str
    subject: str
    problem: str


@dataclass(frozen=True, slots=True)
class SchedulePushed(Event):
    """A schedule's job ``id`` was pushed for the time ``due``, ``late`` seconds after it."""

    words: ClassVar[str] = "schedule pushed"
    level: ClassVar[int] = logging.INFO

    schedule: str
    job: str
    queue: str
    id: str
    due: datetime
    late: float


@dataclass(frozen=True, slots=True)
class ScheduleMissed(Event):
    """The due times of a schedule from ``first`` to ``last`` get no job.

    ``reason``: ``late`` (nothing could push in time; a job for a later time may follow instead) or ``overlap`` (its
    last job is still queued or runs).
    """

    words: ClassVar[str] = "schedule missed"
    level: ClassVar[int] = logging.WARNING

    schedule: str
    first: datetime
    last: datetime
    reason: str
