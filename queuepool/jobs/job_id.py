"""A job's id as a dispatch returns it."""

from __future__ import annotations

from typing import Protocol

from queuepool.jobs.following import JobState


class Follows(Protocol):
    """The part of a ``Queue`` that follows jobs."""

    def job(self, job_id: str) -> JobState | None: ...

    def wait(self, job_id: str, timeout: float | None = None) -> JobState: ...

    async def await_job(self, job_id: str, timeout: float | None = None) -> JobState: ...


class JobId(str):
    """A job's id, which also knows its queue, so that a tracked job can be followed."""

    __slots__ = ("_queue",)
    _queue: Follows

    def __new__(cls, text: str, queue: Follows) -> JobId:
        made = super().__new__(cls, text)
        made._queue = queue
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """A copy, or a pickle for another process, is a plain string."""
        return str, (str(self),)

    def job(self) -> JobState | None:
        """As ``Queue.job``."""
        return self._queue.job(self)

    def wait(self, timeout: float | None = None) -> JobState:
        """As ``Queue.wait``."""
        return self._queue.wait(self, timeout)

    async def await_job(self, timeout: float | None = None) -> JobState:
        """As ``Queue.await_job``."""
        return await self._queue.await_job(self, timeout)
