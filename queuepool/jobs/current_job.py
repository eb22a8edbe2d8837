"""The job that this process is running. Its handler reads it and may decide how the attempt ends."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from queuepool.errors import Cancelled, JobError, JobFailedByHand, QueuepoolError
from queuepool.jobs.job_options import Delay, seconds_until
from queuepool.payload.context import Context
from queuepool.payload.envelope import SCHEDULED_FOR, Payload
from queuepool.settlement.verdict import NOT_RUN, Delete, Fail, Release, Run, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from queuepool.jobs.current_flow import CurrentFlow
    from queuepool.payload.kept_step import StepsEnd
    from queuepool.payload.lease import Lease
    from queuepool.stores.batches import Batch, Batches


#: least seconds for which a job is put off: nothing else ends one that puts itself off again and again
_LEAST_WAIT = 1.0
#: characters of a note on progress
_MOST_NOTE = 200


class AttemptSteps(Protocol):
    """The steps that an attempt has asked for; ``jobs.steps`` makes it."""

    def end(self) -> StepsEnd | None:
        """The attempt is over. What the end of its lease does with what is kept; ``None`` if nothing was read."""

    @property
    def unused(self) -> tuple[str, ...]:
        """The names that are kept and that the attempt has not asked for."""


@dataclass(slots=True, weakref_slot=True)
class Current:
    """The running job. What its handler decides here takes effect when the handler returns."""

    payload: Payload
    queue: str
    verdict: Verdict | None = field(default=None)
    #: whether its handler has raised an exception after which the job is not retried (``retry_on``, ``fail_on``)
    is_final: bool = False
    #: the seconds until its next try, if this exception sets them
    retry_after: float | None = None
    #: the worker's right to it; ``None`` outside of a worker
    lease: Lease | None = field(default=None, repr=False, compare=False)
    #: its steps in this attempt, once it has asked for one
    steps: AttemptSteps | None = field(default=None, init=False, repr=False, compare=False)
    #: whether it has begun before and left at a step, though it is too late for a first attempt
    went_on: bool = field(default=False, init=False, repr=False, compare=False)
    #: what those who follow the job are shown
    run: Run = field(default=NOT_RUN, init=False, repr=False)
    # Unset in nearly all jobs, which so pay nothing for them.
    _told: bool = field(init=False, repr=False, compare=False)
    _asks: bool = field(init=False, repr=False, compare=False)
    _is_in_hook: bool = field(init=False, repr=False, compare=False)
    _flow: CurrentFlow = field(init=False, repr=False, compare=False)
    _arguments: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    _lacks: JobError = field(init=False, repr=False, compare=False)
    _holder: str = field(init=False, repr=False, compare=False)

    @property
    def id(self) -> str:
        """The job's id, as in the failed store and the log."""
        return self.payload.id

    @property
    def uuid(self) -> str:
        """The payload's uuid; empty if it has none."""
        return self.payload.uuid

    @property
    def name(self) -> str:
        """The name under which its handler is registered."""
        return self.payload.name

    @property
    def attempts(self) -> int:
        """How often the job was started, including this attempt."""
        return self.payload.attempts

    @property
    def context(self) -> Context:
        """Laravel's context that the job came with; ``queuepool.context`` is what its own jobs will get."""
        return Context(self.payload.context)

    @property
    def tags(self) -> tuple[str, ...]:
        """The job's tags, of ``@job(tags=...)`` or Horizon's; at most 32, each cut to 128 characters."""
        return self.payload.tags

    @property
    def extra(self) -> dict[str, Any]:
        """The payload's fields that queuepool does not know, such as Horizon's ``silenced``."""
        return self.payload.extra

    @property
    def scheduled_for(self) -> datetime | None:
        """The due time for which a schedule pushed the job, in the schedule's zone; ``None`` for other jobs."""
        from datetime import datetime  # imported here: few jobs ask

        text = self.payload.fields.get(SCHEDULED_FOR)
        return datetime.fromisoformat(text) if isinstance(text, str) else None

    @property
    def batch(self) -> Batch | None:
        """The job's batch in Laravel, read now; ``None`` if it has none.

        Raises ``ConfigError`` if no database with batches is configured, and ``StoreError``.
        """
        return _batch_of(self.payload) if _batch_of else None

    @property
    def flow(self) -> CurrentFlow | None:
        """The flow that the job is a member of, to which it may add calls; ``None`` if it is in none."""
        return getattr(self, "_flow", None)

    def joins(self, flow: CurrentFlow) -> None:
        """Called by the worker: it is a member of this flow."""
        self._flow = flow

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name, as its handler gets them, for its middleware; empty for a job without."""
        return getattr(self, "_arguments", {})

    def takes(self, arguments: Mapping[str, Any]) -> None:
        """Called before its middleware: its handler gets these."""
        self._arguments = arguments

    @property
    def lacks(self) -> JobError | None:
        """Why it cannot begin, as its worker has found."""
        return getattr(self, "_lacks", None)

    @lacks.setter
    def lacks(self, error: JobError) -> None:
        self._lacks = error

    @property
    def holder(self) -> str:
        """The name under which it holds places of limits, which end with its lease; empty = it holds none."""
        return getattr(self, "_holder", "")

    @holder.setter
    def holder(self, name: str) -> None:
        self._holder = name

    @property
    def stopping(self) -> bool:
        """Whether the worker takes no further job: it is to stop, is replaced, or may not work now (paused, down).

        A long job may then stop at a safe point and ``release()``; its timeout stays as it was. It is false if the
        worker is merely to be recycled, which waits for the job. True as well once the job is ``cancelled``: one that
        has asked this has some seconds to end by itself, and is not tried again whatever it decides.
        """
        self._asks = True
        return self.cancelled or _is_stopping()

    @property
    def cancelled(self) -> bool:
        """Whether the job has been cancelled: it has some seconds to end by itself."""
        return getattr(self, "_told", False)

    @property
    def asks(self) -> bool:
        """Whether the handler has asked if it should stop: then it can end by itself."""
        return getattr(self, "_asks", False)

    @property
    def is_in_hook(self) -> bool:
        """Whether one of its hooks runs, which no step of it may leave."""
        return getattr(self, "_is_in_hook", False)

    @contextmanager
    def in_hook(self) -> Iterator[None]:
        """Called by the worker: one of its hooks runs."""
        self._is_in_hook = True
        try:
            yield
        finally:
            self._is_in_hook = False

    def ends(self) -> None:
        """Called by the worker: its handler has ended, and so the job does by itself."""
        self._asks = True

    def cancel(self, error: Cancelled, *, requeue: bool = False) -> None:
        """Called by the worker: it has failed with this error, even if it returns, unless it has called ``delete``.

        ``requeue``: it goes back to its queue, unless it returns: then it is done, and must not run again.
        """
        self._told = True
        if not requeue and not isinstance(self.verdict, Delete):
            self.verdict = Fail(error)

    def progress(self, fraction: float, note: str = "") -> None:
        """Report how far the job is, from 0.0 to 1.0, for ``status`` and for those who follow it.

        A ``note`` is cut to 200 characters. Cheap: it is written to memory, and from there to the store twice a
        second. Raises ``ValueError`` for a fraction out of range.
        """
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
            raise ValueError(f"progress must be a number from 0 to 1, not {fraction!r}")
        note = str(note)[:_MOST_NOTE]
        self.run = self.run._replace(progress=float(fraction), note=note)
        _show_progress(float(fraction), note)

    def release(self, delay: Delay = 0.0) -> None:
        """Retry the job after ``delay`` instead of completing it. Uses up a try; on the last try the job fails.

        ``delay`` as for ``later``: seconds, ``"5m"``, a ``timedelta`` or a ``datetime``. Raises ``ValueError``.
        """
        self.verdict = Release(seconds_until(delay))

    def postpone(self, delay: Delay) -> None:
        """Run the job after ``delay``, as in ``release``, but for a second at least. Uses up no try.

        An exception that the attempt ends with counts all the same.
        """
        self.verdict = Release(max(seconds_until(delay), _LEAST_WAIT), uses_try=False)

    def skip(self, reason: str) -> None:
        """Complete the job as one that was left out: ``JobSkipped`` tells why.

        Middleware calls it and does not yield.
        """
        from queuepool.events import JobSkipped  # imported here: few jobs are skipped
        from queuepool.events.listeners import LISTENERS
        from queuepool.settlement.facts import facts_of

        self.run = self.run._replace(cancelled=reason, is_skipped=True)
        self.verdict = Delete()
        LISTENERS.emit(JobSkipped(facts_of(self.payload, self.queue), reason))

    def fail(self, reason: str | BaseException = "failed by its handler") -> None:
        """Fail the job, whatever tries are left, and record it in the failed store."""
        self.verdict = Fail(reason if isinstance(reason, BaseException) else JobFailedByHand(reason))

    def delete(self) -> None:
        """Complete the job, even if the handler raises after this."""
        self.verdict = Delete()


_running: Current | None = None
#: the job of a worker that runs several side by side, each in its own context
_beside: ContextVar[Current | None] = ContextVar("queuepool_job", default=None)
_batch_of: Callable[[Payload], Batch | None] | None = None


def _never() -> bool:
    return False


def _shown_nowhere(fraction: float, note: str) -> None:
    return None


_is_stopping: Callable[[], bool] = _never
_show_progress: Callable[[float, str], None] = _shown_nowhere


def current() -> Current:
    """The running job. Raises ``QueuepoolError`` if none is running."""
    job = _running or _beside.get()
    if job is None:
        remedy = "in a test, use run_now() or as_current() of queuepool.testing"
        raise QueuepoolError(f"no job is running in this process: {remedy}")
    return job


def running() -> Current | None:
    """The running job; ``None`` if there is none."""
    return _running or _beside.get()


def running_id() -> str:
    """The id of the running job; empty if there is none."""
    job = _running or _beside.get()
    return job.id if job else ""


def set_batches(batch_id_of: Callable[[Payload], str], batches: Callable[[], Batches]) -> None:
    """Called by the worker: how a job's batch is found."""
    global _batch_of

    def batch_of(payload: Payload) -> Batch | None:
        batch_id = batch_id_of(payload)
        return batches().find(batch_id) if batch_id else None

    _batch_of = batch_of


def set_stopping(is_stopping: Callable[[], bool]) -> None:
    """Called by the worker: how a job learns that the worker is about to leave."""
    global _is_stopping
    _is_stopping = is_stopping


def set_progress(show: Callable[[float, str], None]) -> None:
    """Called by the worker: where a job's progress is shown."""
    global _show_progress
    _show_progress = show


def set_current(job: Current | None) -> None:
    """Called by the worker. It runs one job at a time, so a plain variable suffices; the job's threads see it too."""
    global _running
    _running = job


def set_job_beside(job: Current) -> None:
    """Called by a worker that runs several jobs side by side, in the job's context: its tasks and threads see it."""
    _beside.set(job)
