"""Middleware of single jobs: generator functions around their handlers (``around``), and ``skip_if``.

The job's task is wrapped where it is bound to its arguments: a worker runs it as any other, and jobs without middleware
pay nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from inspect import Parameter
from types import TracebackType
from typing import Any, TypeAlias

from queuepool.errors import ConfigError
from queuepool.jobs.current_job import Current, current
from queuepool.jobs.definition import called, ways_of
from queuepool.jobs.registry import Handler, Task

#: called with the job; what it does before its ``yield`` comes before the handler, the rest after it
Middleware: TypeAlias = Callable[[Current], Iterator[None] | AsyncIterator[None]]


def wrapped(handler: Handler) -> Handler:
    """The handler inside its middleware. Raises ``ConfigError`` for middleware that cannot run around it."""
    options = handler.options
    signature = inspect.signature(handler.target)
    _check(handler, [one for one in (*options.around, options.skip_if) if one], signature)

    def bind(*args: Any, **kwargs: Any) -> Task:
        task = handler.bind(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return within(task, options.around, dict(given.arguments), options.skip_if, is_async=handler.is_async)

    return Handler(handler.name, bind, options, handler.target)


def within(
    task: Task,
    around: Sequence[Middleware],
    arguments: Mapping[str, Any],
    skip_if: Callable[..., object] | None = None,
    *,
    is_async: bool,
) -> Task:
    """The task inside this middleware, the first outermost."""
    return (_AsyncLayered if is_async else _Layered)(task, around, arguments, skip_if)


def _check(handler: Handler, several: list[Callable[..., object]], signature: inspect.Signature) -> None:
    for one in several:
        if _is_async(one) and not handler.is_async:
            why = "it is async, but the job is a plain function"
            raise ConfigError("@job", f"{handler.name}: {called(one)} cannot run around it: {why}")
        for name in sorted(getattr(one, "takes", frozenset()) - signature.parameters.keys()):
            why = f"its {called(one)} takes {name!r}, which is not an argument of the job"
            raise ConfigError("@job", f"{handler.name}: {why}")
    skip_if = handler.options.skip_if
    for name in _required(skip_if) - signature.parameters.keys() if skip_if else ():
        raise ConfigError("@job", f"{handler.name}: its skip_if takes {name!r}, which is not an argument of the job")


def _is_async(one: Callable[..., object]) -> bool:
    return any(inspect.isasyncgenfunction(way) or inspect.iscoroutinefunction(way) for way in ways_of(one))


def _required(function: Callable[..., object]) -> set[str]:
    several = inspect.signature(function).parameters.values()
    return {one.name for one in several if one.default is one.empty and one.kind not in _ANY}


_ANY = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(slots=True)
class _Layered:
    """The task of a plain function inside its middleware."""

    task: Task
    around: Sequence[Middleware]
    arguments: Mapping[str, Any]
    skip_if: Callable[..., object] | None
    #: whether the handler was called
    has_begun: bool = False

    def run(self) -> object:
        job = current()
        job.takes(self.arguments)
        if _skips(job, self._asked()):
            return None
        with ExitStack() as stack:
            for middleware in self.around:
                if not stack.enter_context(_Layer(middleware, job)):
                    return None
            self.has_begun = True
            returned = self.task.run()
            if not inspect.isawaitable(returned):
                return returned
            return _awaited(returned, stack.pop_all())
        return None

    @property
    def after_succeeded(self) -> Callable[[], object] | None:
        return self.task.after_succeeded if self.has_begun else None

    def after_failed(self, error: BaseException) -> object:
        return self.task.after_failed(error)

    def _asked(self) -> object:
        """What ``skip_if`` says of these arguments: those of them that it takes."""
        skip_if = self.skip_if
        if skip_if is None:
            return False
        parameters = inspect.signature(skip_if).parameters
        takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
        return skip_if(**{name: value for name, value in self.arguments.items() if takes_all or name in parameters})


class _AsyncLayered(_Layered):
    """As ``_Layered``, of a coroutine function."""

    __slots__ = ()

    def run(self) -> object:
        return self._run()

    async def _run(self) -> object:
        job = current()
        job.takes(self.arguments)
        said = self._asked()
        if _skips(job, await said if inspect.isawaitable(said) else said):
            return None
        async with AsyncExitStack() as stack:
            for middleware in self.around:
                if not await stack.enter_async_context(_AsyncLayer(middleware, job)):
                    return None
            self.has_begun = True
            returned = self.task.run()
            return await returned if inspect.isawaitable(returned) else returned
        return None


async def _awaited(returned: Awaitable[object], layers: ExitStack) -> object:
    """What a plain function has returned, such as one that wraps a coroutine function, inside its middleware."""
    with layers:
        return await returned
    return None


def _skips(job: Current, said: object) -> bool:
    """Skip the job if its ``skip_if`` has said so; a text is the reason."""
    if said:
        job.skip(said if isinstance(said, str) else "its skip_if is true of it")
    return bool(said)


class _Layer:
    """One middleware around an attempt. Entering it says whether the job goes on."""

    def __init__(self, middleware: Middleware, job: Current) -> None:
        self._name, self._job = called(middleware), job
        self._steps: Any = middleware(job)
        self._is_left = False

    def __enter__(self) -> bool:
        try:
            next(self._steps)
        except StopIteration:
            return self._leaves_out()
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Whether the middleware has caught the job's error."""
        if self._is_left:
            return False
        try:
            next(self._steps) if error is None else self._steps.throw(error)
        except StopIteration as end:
            return error is not None and end is not error
        except BaseException as raised:
            if _is_the_jobs(raised, error, trace):
                return False
            raise
        self._steps.close()
        raise self._yielded_twice()

    def _leaves_out(self) -> bool:
        """It has ended before its yield, which leaves the job out if it has said what becomes of it."""
        self._is_left = True
        if self._job.verdict is None:
            ways = "job.skip(), release(), postpone(), fail() or delete()"
            raise RuntimeError(f"the middleware {self._name} did not yield; to leave the job out, call {ways}")
        return False

    def _yielded_twice(self) -> RuntimeError:
        return RuntimeError(f"the middleware {self._name} yielded twice")


class _AsyncLayer(_Layer):
    """As ``_Layer``, around a coroutine: the middleware may be a plain or an async generator.

    One that asks a store has the latter as its ``in_async``.
    """

    def __init__(self, middleware: Middleware, job: Current) -> None:
        super().__init__(getattr(middleware, "in_async", middleware), job)

    async def __aenter__(self) -> bool:
        if not inspect.isasyncgen(self._steps):
            return self.__enter__()
        try:
            await anext(self._steps)
        except StopAsyncIteration:
            return self._leaves_out()
        return True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._is_left or not inspect.isasyncgen(self._steps):
            return self.__exit__(kind, error, trace)
        try:
            await (anext(self._steps) if error is None else self._steps.athrow(error))
        except StopAsyncIteration as end:
            return error is not None and end is not error
        except BaseException as raised:
            if _is_the_jobs(raised, error, trace):
                return False
            raise
        await self._steps.aclose()
        raise self._yielded_twice()


def _is_the_jobs(raised: BaseException, error: BaseException | None, trace: TracebackType | None) -> bool:
    """Whether what came out of the middleware is the job's own error, which then goes on unchanged."""
    if error is None:
        return False
    # A StopIteration from the job comes out of a generator as the cause of a RuntimeError (PEP 479).
    is_wrapped = isinstance(error, (StopIteration, StopAsyncIteration)) and raised.__cause__ is error
    if raised is error or is_wrapped:
        error.__traceback__ = trace  # without the frames of the middleware
    return raised is error or is_wrapped
