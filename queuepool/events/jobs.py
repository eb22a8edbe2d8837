"""Events of jobs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import ClassVar

from queuepool.events.base import UNKNOWN, Event, JobEvent, KilledAttempt


@dataclass(frozen=True, slots=True)
class JobQueued(Event):
    """This process pushed a job, due in ``delay`` seconds; emitted after the store has it.

    With ``within`` and ``after_commit`` it is emitted at the dispatch: the commit, or the push after it, may yet fail.
    """

    words: ClassVar[str] = "job queued"
    level: ClassVar[int] = logging.DEBUG

    id: str
    name: str
    queue: str
    delay: float


@dataclass(frozen=True, slots=True)
class FlowEvent(Event):
    """A flow is over: none of its members runs. ``state``: ``done``, ``failed``, ``cancelled`` or ``expired``.

    Emitted by the process that has ended its last member, after that; if it dies just then, by none.
    """

    id: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class FlowFinished(FlowEvent):
    """A flow is done."""

    words: ClassVar[str] = "flow done"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class FlowFailed(FlowEvent):
    """A flow has ended, but is not done: members of it have failed or never started."""

    words: ClassVar[str] = "flow failed"
    level: ClassVar[int] = logging.ERROR


@dataclass(frozen=True, slots=True)
class JobParked(JobEvent):
    """A job did not begin, as the ``limit`` with this key has no place for it. It begins later, and loses no try."""

    words: ClassVar[str] = "job parked"
    level: ClassVar[int] = logging.DEBUG

    limit: str


@dataclass(frozen=True, slots=True)
class LimitChanged(Event):
    """The code of this worker has other numbers for a limit than the code of those before; its own are now in force.

    ``seconds``: 0.0 = so many at a time.
    """

    words: ClassVar[str] = "the code has other numbers for this limit than before; they are now in force"
    level: ClassVar[int] = logging.WARNING

    limit: str
    number: int
    seconds: float
    number_before: int
    seconds_before: float


@dataclass(frozen=True, slots=True)
class JobReserving(Event):
    """The worker is about to reserve a job."""

    words: ClassVar[str] = "reserving"
    level: ClassVar[int] = logging.DEBUG

    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobProcessing(JobEvent):
    """An attempt is about to begin."""

    words: ClassVar[str] = "job processing"
    level: ClassVar[int] = logging.DEBUG


@dataclass(frozen=True, slots=True)
class JobProcessed(JobEvent):
    """The handler returned after ``duration`` seconds.

    ``wait``: seconds from its push, or from when it was due, until it began, to the millisecond; in whole seconds
    if Laravel has pushed the job without Horizon. ``None`` = not known, as on a second try.
    """

    words: ClassVar[str] = "job done"
    level: ClassVar[int] = logging.INFO

    duration: float
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class JobExceptionOccurred(JobEvent):
    """The handler raised ``error`` after ``duration`` seconds."""

    words: ClassVar[str] = "job raised"
    level: ClassVar[int] = logging.WARNING

    error: BaseException
    duration: float


@dataclass(frozen=True, slots=True)
class JobSkipped(JobEvent):
    """The job is left out and counts as done; ``reason`` says why: it has expired, it is paid."""

    words: ClassVar[str] = "job skipped"
    level: ClassVar[int] = logging.INFO

    reason: str


@dataclass(frozen=True, slots=True)
class JobReleased(JobEvent):
    """The job is retried in ``delay`` seconds because of ``error``; ``None`` when the handler asked for it."""

    words: ClassVar[str] = "job released"
    level: ClassVar[int] = logging.INFO

    delay: float
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class JobFailed(JobEvent):
    """The job has failed for good and is recorded in the failed store."""

    words: ClassVar[str] = "job failed"
    level: ClassVar[int] = logging.ERROR

    error: BaseException


@dataclass(frozen=True, slots=True)
class JobTimedOut(JobEvent):
    """The attempt ran past its deadline; ``trace`` shows where it hung.

    Its worker was killed, unless ``killed.is_cancelled``.
    """

    words: ClassVar[str] = "job timed out"
    level: ClassVar[int] = logging.WARNING

    trace: str
    killed: KilledAttempt = field(default=UNKNOWN, repr=False)


@dataclass(frozen=True, slots=True)
class JobLost(JobEvent):
    """The worker died while it ran the job; ``cause`` is the signal or exit code in words."""

    words: ClassVar[str] = "job lost its worker"
    level: ClassVar[int] = logging.WARNING

    cause: str
    trace: str
    killed: KilledAttempt = field(default=UNKNOWN, repr=False)


@dataclass(frozen=True, slots=True)
class JobCancelled(JobEvent):
    """``by`` has cancelled the job. If it ran, that attempt was ended, and ``killed`` says whether with its worker.

    ``JobFailed`` follows; or ``JobGivenBack``, if it was to go back to its queue.
    """

    words: ClassVar[str] = "job cancelled"
    level: ClassVar[int] = logging.WARNING

    by: str
    killed: KilledAttempt = field(default=UNKNOWN, repr=False)


@dataclass(frozen=True, slots=True)
class JobGivenBack(JobEvent):
    """The job went back to the head of its queue with its attempts unchanged."""

    words: ClassVar[str] = "job given back"
    level: ClassVar[int] = logging.INFO


@dataclass(frozen=True, slots=True)
class LeaseLost(JobEvent):
    """The worker no longer held the lease when it came to settle the job; nothing was written."""

    words: ClassVar[str] = "lease lost, nothing was written"
    level: ClassVar[int] = logging.WARNING


@dataclass(frozen=True, slots=True)
class JobQuarantined(Event):
    """A payload that cannot be a job, or that has crashed two workers, was set aside; ``reason`` is one word."""

    words: ClassVar[str] = "payload quarantined"
    level: ClassVar[int] = logging.ERROR

    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class HookRaised(JobEvent):
    """A hook of the job, or one of ``@around``, raised or misbehaved; the job's outcome does not change."""

    words: ClassVar[str] = "hook raised"
    level: ClassVar[int] = logging.ERROR

    hook: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ResultNotKept(JobEvent):
    """A tracked job is done, but what it returned cannot be kept; ``reason`` says why."""

    words: ClassVar[str] = "result not kept"
    level: ClassVar[int] = logging.WARNING

    reason: str


@dataclass(frozen=True, slots=True)
class StepUnused(JobEvent):
    """The job is done, and its last attempt has not asked for the steps with these ``names``, which were kept of it.

    Its code has changed since: a step was removed, or renamed, and so was run again.
    """

    words: ClassVar[str] = "kept steps were not used"
    level: ClassVar[int] = logging.WARNING

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TasksLeft(JobEvent):
    """An async job or its hook left ``tasks`` on the loop. They were cancelled; ``refused`` of them did not end."""

    words: ClassVar[str] = "tasks left behind were cancelled"
    level: ClassVar[int] = logging.WARNING

    tasks: int
    refused: int


@dataclass(frozen=True, slots=True)
class LoopBlocked(JobEvent):
    """The job has blocked the event loop, and so the jobs beside it, for ``seconds``; ``trace`` shows where.

    At most once a minute for jobs of one name. ``job`` is empty for code of no job, such as the hook of a job that is
    over.
    """

    words: ClassVar[str] = "event loop blocked"
    level: ClassVar[int] = logging.WARNING

    seconds: float
    trace: str


@dataclass(frozen=True, slots=True)
class PayloadOdd(JobEvent):
    """Something in the payload was not understood and is ignored; emitted once for each job name."""

    words: ClassVar[str] = "payload odd"
    level: ClassVar[int] = logging.WARNING

    oddity: str
