"""Every moment that somebody may want to hear of: what happened, as frozen facts.

A listener is a function in a module that the configuration names under ``listeners``::

    from queuepool import on
    from queuepool.events import JobFailed

    @on(JobFailed)
    def tell(event: JobFailed) -> None:
        print(event.job.name, event.error)

Events of a running job are told in its worker. What a dead worker cannot tell (``JobTimedOut``, ``JobLost``,
the ``JobReleased`` or ``JobFailed`` that follows, ``WorkerDied``, and the pool's own events) is told in the steward.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Which job an event is about; ``attempt`` counts from 1."""

    id: str
    uuid: str
    name: str
    queue: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all; listening to it is listening to everything."""

    #: what a log line begins with, and its level
    words: ClassVar[str] = ""
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class JobQueued(Event):
    """A job was pushed by this process; told after the store has it."""

    words: ClassVar[str] = "job queued"
    level: ClassVar[int] = logging.DEBUG

    id: str
    name: str
    queue: str
    delay: float


@dataclass(frozen=True, slots=True)
class JobReserving(Event):
    """The worker is about to ask for a job."""

    words: ClassVar[str] = "reserving"
    level: ClassVar[int] = logging.DEBUG

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobEvent(Event):
    """The base of what happens to one reserved job."""

    job: JobFacts


@dataclass(frozen=True, slots=True)
class JobProcessing(JobEvent):
    """An attempt is about to begin."""

    words: ClassVar[str] = "job processing"
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class JobProcessed(JobEvent):
    """The handler returned; ``duration`` in seconds."""

    words: ClassVar[str] = "job processed"
    level: ClassVar[int] = logging.DEBUG

    duration: float


@dataclass(frozen=True, slots=True)
class JobExceptionOccurred(JobEvent):
    """The handler raised."""

    words: ClassVar[str] = "job raised"
    level: ClassVar[int] = logging.WARNING

    error: BaseException
    duration: float


@dataclass(frozen=True, slots=True)
class JobReleased(JobEvent):
    """The job will be tried again in ``delay`` seconds; ``error`` is why, ``None`` when the handler asked for it."""

    words: ClassVar[str] = "job released"
    level: ClassVar[int] = logging.INFO

    delay: float
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class JobFailed(JobEvent):
    """The job is over and recorded in the failed store."""

    words: ClassVar[str] = "job failed"
    level: ClassVar[int] = logging.ERROR

    error: BaseException


@dataclass(frozen=True, slots=True)
class JobTimedOut(JobEvent):
    """The attempt ran past its deadline and its worker was killed; ``trace`` says where it hung."""

    words: ClassVar[str] = "job timed out"
    level: ClassVar[int] = logging.WARNING

    trace: str


@dataclass(frozen=True, slots=True)
class JobLost(JobEvent):
    """The worker died with the job in hand; ``cause`` is the signal or exit code in words."""

    words: ClassVar[str] = "job lost its worker"
    level: ClassVar[int] = logging.WARNING

    cause: str
    trace: str


@dataclass(frozen=True, slots=True)
class JobGivenBack(JobEvent):
    """The job went back to the head of its queue, attempts as they were."""

    words: ClassVar[str] = "job given back"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class LeaseLost(JobEvent):
    """The job was not ours any more when it was to be settled; nothing was written."""

    words: ClassVar[str] = "lease lost, nothing was written"
    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True)
class JobQuarantined(Event):
    """A payload that cannot be a job was set aside; ``reason`` is one word."""

    words: ClassVar[str] = "payload quarantined"
    level: ClassVar[int] = logging.ERROR

    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class HookRaised(JobEvent):
    """The job's ``after_succeeded`` or ``after_failed`` raised; the job's fate stays what it was."""

    words: ClassVar[str] = "hook raised"
    level: ClassVar[int] = logging.ERROR

    hook: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class PayloadOdd(JobEvent):
    """Something in the payload was not understood and ignored; told once for each job name."""

    words: ClassVar[str] = "payload odd"
    level: ClassVar[int] = logging.WARNING

    oddity: str


@dataclass(frozen=True, slots=True)
class Looping(Event):
    """The worker begins a round; a listener that returns ``False`` holds it for ``sleep`` seconds."""

    words: ClassVar[str] = "looping"
    level: ClassVar[int] = logging.DEBUG

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStarting(Event):
    """The modules are imported; the worker is about to ask for its first job."""

    words: ClassVar[str] = "worker starting"
    level: ClassVar[int] = logging.INFO

    worker: int


@dataclass(frozen=True, slots=True)
class WorkerStopping(Event):
    """The worker leaves in order; ``reason`` is a value of ``limits.StopReason``."""

    words: ClassVar[str] = "worker stopping"
    level: ClassVar[int] = logging.INFO

    worker: int
    reason: str
    code: int
    jobs: int


@dataclass(frozen=True, slots=True)
class WorkerPaused(Event):
    """The worker takes no more jobs; ``reason``: signal, maintenance."""

    words: ClassVar[str] = "worker paused"
    level: ClassVar[int] = logging.INFO

    reason: str


@dataclass(frozen=True, slots=True)
class WorkerContinued(Event):
    """The worker takes jobs again."""

    words: ClassVar[str] = "worker continued"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class WorkerDied(Event):
    """A process of the pool ended without leave; ``cause`` in words."""

    words: ClassVar[str] = "process died"
    level: ClassVar[int] = logging.WARNING

    role: str
    worker: int
    pid: int
    cause: str


@dataclass(frozen=True, slots=True)
class BootFailed(Event):
    """A worker could not import the user's modules; ``trace`` is empty when it is the same as the last one."""

    words: ClassVar[str] = "worker could not import its modules"
    level: ClassVar[int] = logging.ERROR

    worker: int
    trace: str


@dataclass(frozen=True, slots=True)
class PoolRestarting(Event):
    """A restart was broadcast; every worker will be replaced."""

    words: ClassVar[str] = "restart was broadcast"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class PoolPaused(Event):
    """These queues are paused for all hosts."""

    words: ClassVar[str] = "queues paused"
    level: ClassVar[int] = logging.INFO

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolContinued(Event):
    """These queues are served again."""

    words: ClassVar[str] = "queues continued"
    level: ClassVar[int] = logging.INFO

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaintenanceChanged(Event):
    """Maintenance mode began or ended."""

    words: ClassVar[str] = "maintenance"
    level: ClassVar[int] = logging.INFO

    down: bool


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """The store cannot be reached; told once, not for every try."""

    words: ClassVar[str] = "store lost, waiting for it"
    level: ClassVar[int] = logging.ERROR

    problem: str


@dataclass(frozen=True, slots=True)
class StoreRegained(Event):
    """The store answers again after ``outage`` seconds."""

    words: ClassVar[str] = "store regained"
    level: ClassVar[int] = logging.WARNING

    outage: float


@dataclass(frozen=True, slots=True)
class StoreRefused(Event):
    """The store refuses a queue (a key of the wrong type, say); the other queues go on."""

    words: ClassVar[str] = "the store refuses a queue"
    level: ClassVar[int] = logging.ERROR

    queue: str
    problem: str
