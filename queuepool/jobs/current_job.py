"""The job that this process is running, for its handler to ask and to decide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queuepool.errors import JobFailedByHand, QueuepoolError
from queuepool.settlement.verdict import Delete, Fail, Release, Verdict

if TYPE_CHECKING:
    from queuepool.payload.envelope import Payload


@dataclass(slots=True)
class Current:
    """The running job. What its handler decides here is carried out when it returns."""

    payload: Payload
    queue: str
    verdict: Verdict | None = field(default=None)

    @property
    def id(self) -> str:
        return self.payload.id

    @property
    def uuid(self) -> str:
        return self.payload.uuid

    @property
    def name(self) -> str:
        return self.payload.name

    @property
    def attempts(self) -> int:
        """How often it was begun, this time included."""
        return self.payload.attempts

    def release(self, delay: float = 0.0) -> None:
        """Try again in ``delay`` seconds instead of counting as done. Uses up a try: at the last one the job fails."""
        self.verdict = Release(delay)

    def fail(self, reason: str | BaseException = "failed by its handler") -> None:
        """Over, whatever tries are left: into the failed store."""
        self.verdict = Fail(reason if isinstance(reason, BaseException) else JobFailedByHand(reason))

    def delete(self) -> None:
        """Done, even if the handler raises after this."""
        self.verdict = Delete()


_running: Current | None = None


def current() -> Current:
    """The job that is running. Raises ``QueuepoolError`` outside of one."""
    if _running is None:
        raise QueuepoolError("no job is running in this process")
    return _running


def running_id() -> str:
    """The id of that job; empty when there is none."""
    return _running.id if _running else ""


def set_current(job: Current | None) -> None:
    """The worker's: one job at a time, so a plain variable that the job's threads see too."""
    global _running
    _running = job
