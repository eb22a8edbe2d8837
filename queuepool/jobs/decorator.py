"""``@job``: makes a function dispatchable and keeps its type."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, Unpack, overload

from queuepool.config import words
from queuepool.errors import ConfigError
from queuepool.jobs.bulk import as_in_json, calls_of, captured
from queuepool.jobs.definition import check_is_known, check_runs, name_of
from queuepool.jobs.dispatch import Calls, adispatched, dispatched
from queuepool.jobs.job_options import JobOptions, Options, check_schedule, options_of, target_of
from queuepool.jobs.registry import REGISTRY, Handler, arguments_of, by_name, fitted, keywords
from queuepool.jobs.sending import Sending

if TYPE_CHECKING:
    from queuepool.jobs.calls import Call
    from queuepool.jobs.following import JobId
    from queuepool.jobs.job_options import Delay

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


@overload
def job(function: Callable[P, R], /) -> JobFunction[P, R]: ...


@overload
def job(name: str | None = None, **options: Unpack[JobOptions]) -> Callable[[Callable[P, R]], JobFunction[P, R]]: ...


def job(name: str | Callable[P, R] | None = None, **options: Unpack[JobOptions]) -> Any:
    """Register a function as the handler of ``name`` (default: ``module.function``).

    Options: ``queue``, ``tries`` (0 = no limit), ``timeout`` and ``backoff`` (seconds; ``backoff`` also a list of
    them, or ``exponential(1, 300)``), ``max_exceptions``, ``fail_on_timeout``, ``soft_timeout`` (seconds after which
    ``SoftTimeout`` is raised in the function), ``retry_on`` and ``fail_on`` (exception classes: the job is retried only
    after the former, never after the latter; ``retry_on`` also a dict with a delay for each), ``encrypted`` (encrypt
    the data, with ``app_key``). The pool decides those that are not given.
    ``around``: middleware, generator functions around each attempt, as ``@around`` has them for all jobs; ``skip_if``:
    a function of the arguments that says whether the job is left out, as done.
    ``expires``: seconds after it is due within which it must begin; later it is dropped.
    ``tags``: texts that its payloads carry, like Horizon's, for its events and the log as JSON.
    ``schedule``: when a pool pushes it by itself: a cron expression (``"0 3 * * *"``) or an interval (``"30s"``).
    ``aliases``: its former names, under which jobs may still be queued.
    ``limits``: how many may run at a time, or start in a while, over all hosts: ``Concurrency``, ``Rate``.

    ``unique``: an identity with the arguments in braces; a dispatch takes its lock until the job is over, for at most
    ``unique_for`` seconds; if it is held, nothing is pushed and the id is empty. For jobs that Laravel dispatches:
    ``unique_id`` (a function of the arguments) and ``unique_until`` (``"start"``, ``"end"``) say which lock is released
    and when, ``skip_if_cancelled`` skips those of a cancelled batch. Raises ``ConfigError``.
    """
    if name is not None and not isinstance(name, str):
        return _registered(None, options_of(options), name)
    return partial(_registered, name, options_of(options))


def _registered(name: str | None, options: Options, function: Callable[P, R]) -> JobFunction[P, R]:
    if isinstance(function, JobFunction) or hasattr(function, "job_options"):
        raise ConfigError("@job", f"{function!r} is a job already: one @job is enough, and a Job class needs none")
    check_runs(str(name or getattr(function, "__qualname__", repr(function))), function)
    made = JobFunction(name_of(function) if name is None else name, function, options)
    if options.schedule is not None:
        check_schedule(made.name, options.schedule, function)
    handler = Handler(made.name, made.bind, options, function)
    if options.has_middleware:
        from queuepool.jobs.middleware import wrapped  # imported here: few jobs have any

        handler = wrapped(handler)
    REGISTRY.add(handler)
    return made


@dataclass(frozen=True, slots=True)
class Target(Generic[P, R_co]):
    """A job with its queue, delay and transaction chosen; ``dispatch`` takes the function's own arguments."""

    job: JobFunction[P, R_co]
    sending: Sending

    def dispatch(self, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """Push one call and return the job's id; empty if it is unique and its lock is held.

        Raises ``TypeError`` for arguments that do not fit, else as ``Queue.push`` does.
        """
        return self._push([self._call(args, kwargs)])[0]

    @overload
    def call(self: Target[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...

    @overload
    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R_co]: ...

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[Any]:
        """One call, for a flow. Raises ``TypeError`` for arguments that do not fit, ``ValueError`` for a unique job."""
        from queuepool.jobs.calls import call_of  # imported here: few programs have flows

        return call_of(self.job.name, self._call(args, kwargs)[0], self.job.options, self.sending)

    def bulk(self, calls: Iterable[object]) -> list[JobId]:
        """Push many calls, each given as its payload's data: a dict by name or a list by position.

        Raises ``TypeError`` for arguments that do not fit, before any is pushed.
        """
        return self._push(self._several(calls))

    async def adispatch(self, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """``dispatch``, awaited as ``Queue.apush`` is."""
        args, kwargs = captured(args), captured(kwargs)
        call = self._call(args, kwargs)
        return (await self._apush(lambda: [call]))[0]

    async def abulk(self, calls: Iterable[object]) -> list[JobId]:
        """``bulk``, awaited; the calls must not change until it ends."""
        return await self._apush(partial(self._several, calls_of(self.job.name).listed(calls)))

    async def _apush(self, calls: Calls) -> list[JobId]:
        return await adispatched(self.job.name, calls, self.sending, self.job.options)

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[object, Mapping[str, Any]]:
        try:
            return by_name(self.job.__wrapped__, args, kwargs), self.job.arguments(args, kwargs)
        except TypeError as error:
            raise TypeError(f"{self.job.name}: {error}{words.of_dispatch(error, kwargs)}") from None

    def _several(self, calls: Iterable[object]) -> list[tuple[object, Mapping[str, Any]]]:
        several: list[tuple[object, Mapping[str, Any]]] = []
        for data in map(as_in_json, calls_of(self.job.name).checked(calls)):
            args, kwargs = arguments_of(data)
            self._check(args, kwargs)
            several.append((data, self.job.arguments(args, kwargs)))
        return several

    def _check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        try:
            self.job.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.job.name}: {error}") from None

    def _push(self, calls: Sequence[tuple[object, Mapping[str, Any]]]) -> list[JobId]:
        return dispatched(self.job.name, calls, self.sending, self.job.options)


class JobFunction(words.Answering, Generic[P, R]):
    """A function that can also be dispatched. A direct call still runs the plain function."""

    def __init__(self, name: str, function: Callable[P, R], options: Options) -> None:
        self.name = name
        self.options = options
        self._function = function
        self._signature = inspect.signature(function)
        self._names, self._required = keywords(self._signature)
        self._succeeded: Callable[..., object] | None = None
        self._failed: Callable[..., object] | None = None
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<job {self.name!r}>"

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """A unique job's arguments by name, including defaults; empty for other jobs, which need none."""
        if self.options.unique is None:
            return {}
        bound = fitted(self._signature, args, kwargs)
        bound.apply_defaults()
        return bound.arguments

    @words.answering
    def using(
        self, *, queue: str | None = None, delay: Delay = 0, within: Any = None, after_commit: Any = None
    ) -> Target[P, R]:
        """Choose queue, delay and transaction for the dispatch that follows; the last two as ``Queue.within`` and
        ``Queue.after_commit``. Raises ``ConfigError`` if no worker could run it.
        """
        check_is_known(self.name)
        chosen = target_of(self.options, queue)
        return Target(self, Sending(queue=chosen, delay=delay, within=within, after_commit=after_commit))

    @overload
    def call(self: JobFunction[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> Call[T]: ...

    @overload
    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...

    def call(self, /, *args: P.args, **kwargs: P.kwargs) -> Call[Any]:
        """One call, for a flow: ``flow.add``, ``chain`` and ``group`` take it. Raises as ``Target.call`` does."""
        return self.using().call(*args, **kwargs)

    def dispatch(self, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """Push one call and return the job's id. Raises as ``Target.dispatch`` and ``using`` do."""
        return self.using().dispatch(*args, **kwargs)

    def later(self, delay: Delay, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """Push one call that becomes ready after ``delay``."""
        return self.using(delay=delay).dispatch(*args, **kwargs)

    def bulk(self, calls: Iterable[object]) -> list[JobId]:
        """Push many calls, each given as its payload's data: a dict by name or a list by position."""
        return self.using().bulk(calls)

    async def adispatch(self, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """``dispatch``, awaited: the event loop goes on while the job is stored. See ``Queue.apush``."""
        return await self.using().adispatch(*args, **kwargs)

    async def alater(self, delay: Delay, /, *args: P.args, **kwargs: P.kwargs) -> JobId:
        """``later``, awaited."""
        return await self.using(delay=delay).adispatch(*args, **kwargs)

    async def abulk(self, calls: Iterable[object]) -> list[JobId]:
        """``bulk``, awaited."""
        return await self.using().abulk(calls)

    def after_succeeded(self, hook: Callable[P, object]) -> Callable[P, object]:
        """Decorator: the hook is called with the job's arguments after it has succeeded."""
        self._succeeded = hook
        return hook

    def after_failed(
        self, hook: Callable[Concatenate[BaseException, P], object]
    ) -> Callable[Concatenate[BaseException, P], object]:
        """Decorator: the hook is called with the error and the job's arguments after it has failed for good."""
        self._failed = hook
        return hook

    def bind(self, /, *args: Any, **kwargs: Any) -> _Call:
        """The task for one payload's arguments. Raises ``TypeError`` if they do not fit."""
        if args or not self._required <= kwargs.keys() <= self._names:  # the usual call skips it
            fitted(self._signature, args, kwargs)
        return _Call(self._function, args, kwargs, self._succeeded, self._failed)


class _Call(NamedTuple):
    """The task of a function job."""

    function: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    succeeded: Callable[..., object] | None
    failed: Callable[..., object] | None

    def run(self) -> object:
        return self.function(*self.args, **self.kwargs)

    @property
    def after_succeeded(self) -> Callable[[], object] | None:
        return partial(self.succeeded, *self.args, **self.kwargs) if self.succeeded else None

    def after_failed(self, error: BaseException) -> object:
        return self.failed and self.failed(error, *self.args, **self.kwargs)
