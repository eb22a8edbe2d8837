"""``Job``: a job as a class whose fields are the payload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, dataclass_transform

from queuepool.config import words
from queuepool.errors import ConfigError
from queuepool.jobs.bulk import captured, objects_of
from queuepool.jobs.definition import check_handle, check_is_known, name_of, written_name
from queuepool.jobs.dispatch import adispatched, dispatched
from queuepool.jobs.job_options import JobOptions, Options, check_schedule, options_of, target_of
from queuepool.jobs.registry import REGISTRY, Handler
from queuepool.jobs.sending import Sending

if TYPE_CHECKING:
    from queuepool.jobs.calls import Call
    from queuepool.jobs.following import JobId
    from queuepool.jobs.job_options import Delay


@dataclass_transform()
class Job(words.Answering):
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
            cls.job_name = name or written_name(cls)
            REGISTRY.without_handle.add(cls.job_name)
            return
        cls.job_name = name_of(cls) if name is None else name
        check_handle(cls.job_name, cls.handle)
        if cls.job_options.schedule is not None:
            check_schedule(cls.job_name, cls.job_options.schedule, cls)
        handler = Handler(cls.job_name, _binder(cls), cls.job_options, cls)
        if cls.job_options.has_middleware:
            from queuepool.jobs.middleware import wrapped  # imported here: few jobs have any

            handler = wrapped(handler)
        REGISTRY.add(handler)

    def handle(self) -> object:
        """Do the work; may be ``async``."""
        raise NotImplementedError(f"{type(self).__qualname__} has no handle()")

    def after_succeeded(self) -> object:
        """Called after the job has succeeded."""

    def after_failed(self, error: BaseException) -> object:
        """Called after the job has failed for good."""

    def call(self) -> Call[Any]:
        """The job as a call, for a flow. Raises as ``using`` does, and ``ValueError`` for a unique job."""
        return self.using().call()

    def dispatch(self) -> JobId:
        """Push the job and return its id. Raises as ``using`` and ``Queue.push`` do."""
        return self.using().dispatch()

    async def adispatch(self) -> JobId:
        """``dispatch``, awaited: the event loop goes on while the job is stored. See ``Queue.apush``."""
        return await self.using().adispatch()

    async def alater(self, delay: Delay) -> JobId:
        """``later``, awaited."""
        return await self.using(delay=delay).adispatch()

    def later(self, delay: Delay) -> JobId:
        """Push the job to become ready after ``delay``, and return its id."""
        return self.using(delay=delay).dispatch()

    @words.answering
    def using(
        self, *, queue: str | None = None, delay: Delay = 0, within: Any = None, after_commit: Any = None
    ) -> Pending:
        """Choose queue, delay and transaction for the dispatch that follows; the last two as ``Queue.within`` and
        ``Queue.after_commit``. Raises ``ConfigError`` if no worker could run it.
        """
        sending = self._sending(queue, delay, within, after_commit)
        return Pending(self.job_name, self._data(), sending, self.job_options)

    @classmethod
    def bulk(
        cls,
        jobs: Iterable[Self],
        *,
        queue: str | None = None,
        delay: Delay = 0,
        within: Any = None,
        after_commit: Any = None,
    ) -> list[JobId]:
        """Push many jobs in few round trips and return their ids; the options as for ``using``."""
        sending = cls._sending(queue, delay, within, after_commit)
        return dispatched(cls.job_name, _calls(cls, jobs), sending, cls.job_options)

    @classmethod
    async def abulk(
        cls,
        jobs: Iterable[Self],
        *,
        queue: str | None = None,
        delay: Delay = 0,
        within: Any = None,
        after_commit: Any = None,
    ) -> list[JobId]:
        """``bulk``, awaited; the jobs must not change until it ends."""
        sending = cls._sending(queue, delay, within, after_commit)
        calls = partial(_calls, cls, objects_of(cls.job_name, cls).listed(jobs))
        return await adispatched(cls.job_name, calls, sending, cls.job_options)

    @classmethod
    def _sending(cls, queue: str | None, delay: Delay, within: Any, after_commit: Any) -> Sending:
        return Sending(queue=cls._target(queue), delay=delay, within=within, after_commit=after_commit)

    @classmethod
    def _target(cls, queue: str | None) -> str:
        """The queue to push to. Raises ``ConfigError`` for a job or queue that no worker could run or serve."""
        if cls.handle is Job.handle:
            raise ConfigError("", f"{cls.job_name} has no handle()")
        check_is_known(cls.job_name)
        return target_of(cls.job_options, queue)

    def _data(self) -> Mapping[str, Any]:
        # Raw values: the encoder converts those that JSON lacks, as it does with every argument.
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Pending:
    """A job with its queue, delay and transaction chosen."""

    name: str
    data: Mapping[str, Any]
    sending: Sending
    options: Options

    def dispatch(self) -> JobId:
        """Push the job and return its id. Raises as ``Queue.push`` does."""
        return dispatched(self.name, [(self.data, self.data)], self.sending, self.options)[0]

    def call(self) -> Call[Any]:
        """The job as a call, for a flow. Raises ``ValueError`` for a unique job."""
        from queuepool.jobs.calls import call_of  # imported here: few programs have flows

        return call_of(self.name, dict(self.data), self.options, self.sending)

    async def adispatch(self) -> JobId:
        """``dispatch``, awaited as ``Queue.apush`` is."""
        data = captured(self.data)
        return (await adispatched(self.name, lambda: [(data, data)], self.sending, self.options))[0]


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


def _calls(kind: type[Job], jobs: Iterable[Job]) -> list[tuple[object, Mapping[str, Any]]]:
    given = objects_of(kind.job_name, kind).checked(jobs)
    return [(data, data) for data in (job._data() for job in given)]


def _binder(cls: type[Job]) -> Callable[..., _Task]:
    return lambda *args, **kwargs: _Task(cls(*args, **kwargs))
