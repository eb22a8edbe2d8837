"""Which job has made a worker grow: said when the worker leaves because of its memory."""

from __future__ import annotations

#: jobs that are told apart
_MOST = 256


class Growth:
    """By the names of jobs, in MB. It is noted where the memory is measured anyway, so between jobs, and seldom.

    Of quick jobs that ran between two measurements, the last one counts for all.
    """

    def __init__(self) -> None:
        self._by_job: dict[str, float] = {}

    def note(self, job: str, megabytes: float) -> None:
        """The worker has grown by so much since the last measurement, and has run this job last."""
        if job and megabytes > 0 and (job in self._by_job or len(self._by_job) < _MOST):
            self._by_job[job] = self._by_job.get(job, 0.0) + megabytes

    @property
    def most(self) -> tuple[str, float | None]:
        """The job in which it has grown most, and by how much; an empty name if it has not grown."""
        job = max(self._by_job, key=self._by_job.__getitem__, default="")
        return job, round(self._by_job[job], 1) if job else None
