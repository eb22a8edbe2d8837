"""What a test says that it expects of a push."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.delay import Delay, seconds_until
from queuepool.jobs.job_class import Job
from queuepool.testing.pushed import PushedJob, by_name, call_text, target_of
from queuepool.testing.tasks import arguments_of_task, enqueued_arguments, is_task

#: seconds by which delays may differ: one that is a time of day shrinks until it is compared
_TOLERANCE = 1.0
#: what the assertions take beside the job's arguments
_OWN = ("queue", "delay", "times")


@dataclass(frozen=True, slots=True)
class Expected:
    """``args`` and ``kwargs``: all arguments of the job; with neither, any arguments will do."""

    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str | None = None
    delay: float | None = None
    #: the task of Django's whose job it is
    task: Any = None

    @property
    def _is_of_any_arguments(self) -> bool:
        return not self.args and not self.kwargs

    def fits(self, job: PushedJob) -> bool:
        """Whether this job is what was expected."""
        return (
            job.name == self.name
            and (self.queue is None or job.queue == self.queue)
            and (self.delay is None or abs(job.delay - self.delay) < _TOLERANCE)
            and (self._is_of_any_arguments or self._has_arguments(job))
        )

    def _has_arguments(self, job: PushedJob) -> bool:
        if self.task is not None:
            return arguments_of_task(self.task, self.args, self.kwargs) == enqueued_arguments(self.task, job.kwargs)
        wanted = by_name(self.name, self.args, self.kwargs)
        has_the_same = target_of(self.name) is not None or [*self.args] == [*job.args]
        return has_the_same and wanted == job.arguments

    def __str__(self) -> str:
        call = self.name if self._is_of_any_arguments else call_text(self.name, self.args, self.kwargs)
        queue = "" if self.queue is None else f" queue={self.queue}"
        return call + queue + ("" if self.delay is None else f" delay={self.delay:g}")


def expected(
    job: object, args: Sequence[Any], kwargs: Mapping[str, Any], queue: str | None, delay: Delay | None
) -> Expected:
    """``job``: a job function, a ``Job`` class, an object of one (which has its arguments), a task, or a name.

    Raises ``TypeError`` for anything else, and for arguments that the job cannot have.
    """
    if isinstance(job, Job):
        if args or kwargs:
            raise TypeError(f"{job.job_name}: the arguments are in the object already")
        kwargs = {field.name: getattr(job, field.name) for field in fields(job) if field.init}  # type: ignore[arg-type]
    seconds = None if delay is None else seconds_until(delay)
    wanted = Expected(job_name(job), args, kwargs, queue, seconds, job if is_task(job) else None)
    if args or kwargs:
        _check_arguments(wanted)
    return wanted


def _check_arguments(wanted: Expected) -> None:
    try:
        if wanted.task is not None:
            arguments_of_task(wanted.task, wanted.args, wanted.kwargs)
        else:
            by_name(wanted.name, wanted.args, wanted.kwargs)
    except TypeError as error:
        raise TypeError(f"{wanted.name}: {error}") from None


def job_name(job: object) -> str:
    """The name under which the job is pushed."""
    if isinstance(job, JobFunction):
        return job.name
    if isinstance(job, Job) or (isinstance(job, type) and issubclass(job, Job)):
        return job.job_name
    if isinstance(job, str):
        return job
    if is_task(job):
        return str(job.module_path)  # type: ignore[attr-defined]
    raise TypeError(f"{job!r} is no job: give a function with @job, a Job class, an object of one, or a name")


def check_own(job: object, given: Mapping[str, object]) -> None:
    """Raise ``TypeError`` for an option of a push that is the name of an argument of the job, too."""
    name = job_name(job)
    target: Any = getattr(job, "func", None) if is_task(job) else target_of(name)
    parameters = inspect.signature(target).parameters if target else {}
    for option in _OWN:
        if given.get(option) is not None and option in parameters:
            raise TypeError(f"{name} has an argument {option!r} itself: look at the jobs in pushed.of({name!r})")
