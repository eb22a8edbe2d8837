"""``Job``: a job as a class whose fields are the payload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, dataclass_transform

from queuepool.errors import ConfigError
from queuepool.jobs.definition import check_handle, check_is_known, name_of
from queuepool.jobs.dispatch import dispatched
from queuepool.jobs.job_options import JobOptions, Options, options_of, target_of
from queuepool.jobs.registry import REGISTRY, Handler

if TYPE_CHECKING:
    from queuepool.jobs.client import Delay


@dataclass_transform()
class Job:
    """Base class of job classes. Options are class arguments, the same as those of ``@job``.

    ::

        class Import(Job, queue="imports", tries=3):
            path: str

            def handle(self) -> None: ...

        Import("/tmp/a.csv").dispatch()
    """

    job_name: ClassVar[str]
    job_options: ClassVar[Options]

    def __init_subclass__(cls, *, name: str | None = None, **options: Unpack[JobOptions]) -> None:
        dataclass(cls)
        cls.job_options = options_of(options)
        if cls.handle is Job.handle:  # a base class of jobs
            cls.job_name = name or cls.__qualname__
            return
        cls.job_name = name_of(cls) if name is None else name
        check_handle(cls.job_name, cls.handle)
        REGISTRY.add(Handler(cls.job_name, _binder(cls), cls.job_options, cls))

    def handle(self) -> object:
        """Do the work; may be ``async``."""
        raise NotImplementedError(f"{type(self).__qualname__} has no handle()")

    def after_succeeded(self) -> object:
        """Called after the job has succeeded."""

    def after_failed(self, error: BaseException) -> object:
        """Called after the job has failed for good."""

    def dispatch(self) -> str:
        """Push the job and return its id. Raises as ``using`` and ``Queue.push`` do."""
        return self.using().dispatch()

    def later(self, delay: Delay) -> str:
        """Push the job to become ready after ``delay``, and return its id."""
        return self.using(delay=delay).dispatch()

    def using(self, *, queue: str | None = None, delay: Delay = 0) -> Pending:
        """Choose queue and delay for the dispatch that follows. Raises ``ConfigError`` if no worker could run it."""
        return Pending(self.job_name, self._data(), self._target(queue), delay, self.job_options)

    @classmethod
    def bulk(cls, jobs: Iterable[Self], *, queue: str | None = None, delay: Delay = 0) -> list[str]:
        """Push many jobs in few round trips and return their ids."""
        calls = [(data, data) for data in (job._data() for job in jobs)]
        return dispatched(cls.job_name, calls, cls._target(queue), delay, cls.job_options)

    @classmethod
    def _target(cls, queue: str | None) -> str:
        """The queue to push to. Raises ``ConfigError`` for a job or queue that no worker could run or serve."""
        if cls.handle is Job.handle:
            raise ConfigError("@job", f"{cls.job_name} has no handle()")
        check_is_known(cls.job_name)
        return target_of(cls.job_options, queue)

    def _data(self) -> Mapping[str, Any]:
        # Raw values: the encoder converts those that JSON lacks, as it does with every argument.
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Pending:
    """A job with its queue and delay chosen."""

    name: str
    data: Mapping[str, Any]
    queue: str
    delay: Delay
    options: Options

    def dispatch(self) -> str:
        """Push the job and return its id. Raises as ``Queue.push`` does."""
        return dispatched(self.name, [(self.data, self.data)], self.queue, self.delay, self.options)[0]


@dataclass(frozen=True, slots=True)
class _Task:
    """Adapts a job object to ``Task``."""

    job: Job

    def run(self) -> object:
        return self.job.handle()

    @property
    def after_succeeded(self) -> Callable[[], object] | None:
        return None if type(self.job).after_succeeded is Job.after_succeeded else self.job.after_succeeded

    def after_failed(self, error: BaseException) -> object:
        return self.job.after_failed(error)


def _binder(cls: type[Job]) -> Callable[..., _Task]:
    return lambda *args, **kwargs: _Task(cls(*args, **kwargs))
