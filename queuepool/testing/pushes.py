"""What was pushed in a test, and assertions about it."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from queuepool.errors import BadPayload, UnknownJob
from queuepool.jobs.decorator import JobFunction
from queuepool.jobs.diversion import Push
from queuepool.jobs.job_class import Job
from queuepool.jobs.job_options import Delay, seconds_until
from queuepool.jobs.registry import REGISTRY, arguments_of, fitted
from queuepool.payload.envelope import decode
from queuepool.payload.unique_locks import name_of

_WAIT = "waiting for a commit, and not pushed before that"
#: seconds by which delays may differ: one that is a time of day shrinks until it is compared
_TOLERANCE = 1.0
#: what the assertions take beside the job's arguments
_OWN = ("queue", "delay", "times")


class Pushes:
    """The jobs that were pushed, in order; a sequence of ``PushedJob``. An assertion that fails lists them.

    ``job`` is a job function, a ``Job`` class, an object of one, a task of Django's, or a name. Arguments are compared
    as a call: by name, with defaults. Without any, all calls count. ``delay`` takes what ``later`` takes, and may
    differ by a second. The assertions raise ``AssertionError``, and ``TypeError`` for what cannot be such a push.
    """

    def __init__(self, settle: Callable[[], object], waiting: Callable[[], list[PushedJob]]) -> None:
        self._settle, self._waiting = settle, waiting
        self._recorded: list[PushedJob] = []

    @property
    def waiting(self) -> list[PushedJob]:
        """The jobs that wait for a commit: they are not pushed yet."""
        self._settle()
        return self._waiting()

    @property
    def _jobs(self) -> list[PushedJob]:
        self._settle()
        return self._recorded

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[PushedJob]:
        return iter(self._jobs)

    def __getitem__(self, index: int) -> PushedJob:
        return self._jobs[index]

    def __repr__(self) -> str:
        jobs, waiting = self._jobs, self._waiting()
        lines = [_listed("pushed", jobs) if jobs else "nothing was pushed"]
        return "\n".join([*lines, _listed(_WAIT, waiting)] if waiting else lines)

    def of(self, job: object) -> list[PushedJob]:
        """The pushes of one job."""
        name = job_name(job)
        return [pushed for pushed in self._jobs if pushed.name == name]

    def assert_pushed(
        self,
        job: object,
        /,
        *args: Any,
        queue: str | None = None,
        delay: Delay | None = None,
        times: int | None = None,
        **kwargs: Any,
    ) -> PushedJob:
        """The job was pushed with these arguments; returns the first such push.

        ``queue``, ``delay``: where to, and with which delay; ``None`` = any. ``times``: exactly this often; ``None`` =
        at least once.
        """
        __tracebackhide__ = True
        if times is not None and times < 1:
            raise ValueError(f"times cannot be {times!r}: use assert_not_pushed")
        wanted = _wanted(job, args, kwargs, queue, delay, times)
        found = list(filter(wanted.fits, self._jobs))
        if not found:
            raise AssertionError(f"{wanted} was never pushed\n{self!r}")
        if times not in (None, len(found)):
            raise AssertionError(
                f"{wanted} was pushed {len(found)} time{'s' * (len(found) > 1)}, not {times}\n{self!r}"
            )
        return found[0]

    def assert_not_pushed(
        self, job: object, /, *args: Any, queue: str | None = None, delay: Delay | None = None, **kwargs: Any
    ) -> None:
        """The job was not pushed with these arguments."""
        __tracebackhide__ = True
        wanted = _wanted(job, args, kwargs, queue, delay)
        if any(map(wanted.fits, self._jobs)):
            raise AssertionError(f"{wanted} was pushed\n{self!r}")

    def assert_nothing_pushed(self) -> None:
        """No job was pushed."""
        __tracebackhide__ = True
        if self._jobs:
            raise AssertionError(f"jobs were pushed\n{self!r}")

    def assert_count(self, count: int, job: object = None) -> None:
        """This many jobs were pushed, or this many of one job."""
        __tracebackhide__ = True
        found = len(self) if job is None else len(self.of(job))
        if found != count:
            what = "" if job is None else f" of {job_name(job)}"
            raise AssertionError(f"the number of pushes{what} is {found}, not {count}\n{self!r}")

    def add(self, jobs: Sequence[PushedJob]) -> None:
        """Called for each push."""
        self._recorded.extend(jobs)


def _listed(title: str, jobs: Sequence[PushedJob]) -> str:
    return "\n  ".join([f"{title} ({len(jobs)}):", *map(str, jobs)])


def _wanted(
    job: object, args: Any, kwargs: Any, queue: str | None, delay: Delay | None, times: int | None = None
) -> Expected:
    check_own(job, {"queue": queue, "delay": delay, "times": times})
    return expected(job, args, kwargs, queue, delay)


@dataclass(frozen=True, slots=True)
class Expected:
    """A push that a test expects. ``args`` and ``kwargs``: all arguments of the job; with neither, any will do."""

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
    raise TypeError(f"{job!r} is not a job: give a function with @job, a Job class, an object of one, or a name")


def check_own(job: object, given: Mapping[str, object]) -> None:
    """Raise ``TypeError`` for an option of a push that is the name of an argument of the job, too."""
    name = job_name(job)
    target: Any = getattr(job, "func", None) if is_task(job) else target_of(name)
    parameters = inspect.signature(target).parameters if target else {}
    for option in _OWN:
        if given.get(option) is not None and option in parameters:
            raise TypeError(f"{name} has an argument {option!r} itself: look at the jobs in pushed.of({name!r})")


# Django's tasks in assertions: an object of ``django.tasks.Task`` stands for the job that ``enqueue`` pushes.


def is_task(job: object) -> bool:
    """Whether this is a task; nothing of Django's is imported."""
    return hasattr(job, "module_path") and hasattr(job, "takes_context")


def arguments_of_task(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call by name, with defaults. Raises ``TypeError`` if they do not fit."""
    context = [None] if task.takes_context else []
    bound = inspect.signature(task.func).bind(*context, *args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def enqueued_arguments(task: Any, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The same for a pushed task, by its payload's data; ``None`` if they do not fit, which Django does not check."""
    try:
        return arguments_of_task(task, data.get("args", ()), data.get("kwargs", {}))
    except TypeError:
        return None


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 10


@dataclass(frozen=True, slots=True)
class PushedJob:
    """One pushed job, as a test sees it.

    ``args`` and ``kwargs`` are the very objects that were given. Arguments that the job takes by name are in
    ``kwargs``, also if they were given by position; those that it takes by position alone are in ``args``.
    """

    id: str
    #: of the job, or of the PHP class; of ``push_raw`` the one in the payload, if it has one
    name: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str
    #: seconds
    delay: float
    #: those that were given, as the payload's fields: ``maxTries``, ``timeout`` …
    options: Mapping[str, object]
    encrypted: bool
    #: the identity of its unique lock; ``None`` = it is not unique
    unique_id: str | None
    #: the payload that ``push_raw`` was given
    raw: bytes | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """All arguments by name, those that were left out with their defaults; ``kwargs`` if the job is unknown here.

        A push by name may also have a list that does not fit, which only the worker finds; then ``args`` alone has it.
        """
        try:
            return by_name(self.name, self.args, self.kwargs)
        except TypeError:
            return self.kwargs

    def __str__(self) -> str:
        about = {"queue": self.queue, "delay": f"{self.delay:g}" if self.delay else "", "unique_id": self.unique_id}
        words = [f"{key}={value}" for key, value in about.items() if value]
        call = call_text(self.name, self.args, self.kwargs) if self.raw is None else call_text("raw", [self.raw], {})
        return " ".join([call, *words, *["encrypted"] * self.encrypted])


def by_name(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call, by the parameters of the registered job. Raises ``TypeError`` if they do not fit."""
    target = target_of(name)
    if target is None:
        return kwargs
    signature = inspect.signature(target)
    bound = fitted(signature, args, kwargs)
    bound.apply_defaults()
    names = dict(bound.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            names |= names.pop(parameter.name)
    return names


def target_of(name: str) -> Any:
    """The function or class of a registered job; ``None`` if it has none, or is not registered."""
    try:
        return REGISTRY.find(name).target
    except UnknownJob:
        return None


def call_text(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """``name(1, b=2)``, long values shortened."""
    words = [_SHORT.repr(value) for value in args]
    return f"{name}({', '.join([*words, *(f'{key}={_SHORT.repr(value)}' for key, value in kwargs.items())])})"


def pushed_jobs(push: Push) -> list[PushedJob]:
    """The jobs of one push."""
    return [_pushed_job(push, identity, *job) for identity, job in zip(push.ids, push.jobs, strict=True)]


def _pushed_job(push: Push, identity: str, name: str, data: object) -> PushedJob:
    raw = data if isinstance(data, bytes) and not name else None
    args, kwargs = ([], {}) if raw is not None else arguments_of(_as_in_json(data))
    terms = push.terms
    options = {key: value for key, value in terms.options.items() if value not in (None, False)}
    unique_id = None if terms.lock is None else terms.lock.name.removeprefix(name_of(name, ""))
    identity, name = (identity, name) if raw is None else _named_in(raw)
    return PushedJob(
        identity, name, args, kwargs, terms.queue, terms.delay, options, terms.encrypted, unique_id, raw
    )  # fmt: skip


def _as_in_json(data: object) -> object:
    """The data with the outermost type that it gets in the payload; what is in it stays as it is."""
    if isinstance(data, Mapping):
        return dict(data)
    return list(data) if isinstance(data, tuple) else data


def _named_in(raw: bytes) -> tuple[str, str]:
    """Id and name in a payload; empty if it is not a job."""
    try:
        payload = decode(raw)
    except BadPayload:
        return "", ""
    return payload.id, payload.name
