"""The job that this process is running. Its handler reads it and may decide how the attempt ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from queuepool.errors import JobFailedByHand, QueuepoolError
from queuepool.payload.context import Context
from queuepool.settlement.verdict import Delete, Fail, Release, Verdict

if TYPE_CHECKING:
    from queuepool.payload.envelope import Payload


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


def set_current(job: Current | None) -> None:
    """Called by the worker. It runs one job at a time, so a plain variable does, which the job's threads see too."""
    global _running
    _running = job
