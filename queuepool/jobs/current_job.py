"""The job that this process is running. Its handler reads it and may decide how the attempt ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queuepool.errors import JobFailedByHand, QueuepoolError
from queuepool.payload.context import Context
from queuepool.settlement.verdict import Delete, Fail, Release, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from queuepool.payload.envelope import Payload
    from queuepool.stores.batches import Batch, Batches


@dataclass(slots=True, weakref_slot=True)
class Current:
    """The running job. What its handler decides here takes effect when the handler returns."""

    payload: Payload
    queue: str
    verdict: Verdict | None = field(default=None)

    @property
    def id(self) -> str:
        """The job's id, by which the failed store and the log name it."""
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
        """How often the job was started, this attempt included."""
        return self.payload.attempts

    @property
    def context(self) -> Context:
        """Laravel's context that the job came with; ``queuepool.context`` is what its own jobs will get."""
        return Context(self.payload.context)

    @property
    def extra(self) -> dict[str, Any]:
        """What the payload holds beside the fields that queuepool knows: Horizon's ``tags``, ``pushedAt`` …"""
        return self.payload.extra

    @property
    def batch(self) -> Batch | None:
        """Laravel's batch of the job, read now; ``None`` if it has none.

        Raises ``ConfigError`` if no database is known to have batches, and ``StoreError``.
        """
        return _batch_of(self.payload) if _batch_of else None

    @property
    def stopping(self) -> bool:
        """Whether the worker takes no further job: it is to stop, was paused by signal, or is to be replaced.

        A long job may then stop at a safe point and ``release()``; its timeout stays as it was.
        """
        return _is_stopping()

    def release(self, delay: float = 0.0) -> None:
        """Retry the job in ``delay`` seconds instead of completing it. Uses up a try; on the last try the job fails."""
        self.verdict = Release(delay)

    def fail(self, reason: str | BaseException = "failed by its handler") -> None:
        """Fail the job, whatever tries are left, and record it in the failed store."""
        self.verdict = Fail(reason if isinstance(reason, BaseException) else JobFailedByHand(reason))

    def delete(self) -> None:
        """Complete the job, even if the handler raises after this."""
        self.verdict = Delete()


_running: Current | None = None
_batch_of: Callable[[Payload], Batch | None] | None = None


def _never() -> bool:
    return False


_is_stopping: Callable[[], bool] = _never


def current() -> Current:
    """The running job. Raises ``QueuepoolError`` if none is running."""
    if _running is None:
        raise QueuepoolError("no job is running in this process")
    return _running


def running() -> Current | None:
    """The running job; ``None`` if there is none."""
    return _running


def running_id() -> str:
    """The id of the running job; empty if there is none."""
    return _running.id if _running else ""


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


def set_current(job: Current | None) -> None:
    """Called by the worker. It runs one job at a time, so a plain variable does, which the job's threads see too."""
    global _running
    _running = job
