"""What a payload's name may run: nothing but what somebody registered under exactly that name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from queuepool.errors import BadArguments, ConfigError, UnknownJob

#: seconds and counts alike
_MOST = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A job's own wishes; ``None`` leaves it to its pool. Times in seconds."""

    queue: str | None = None
    tries: int | None = None
    timeout: float | None = None
    backoff: tuple[float, ...] | None = None
    max_exceptions: int | None = None
    fail_on_timeout: bool | None = None


class Wishes(TypedDict, total=False):
    """``Options`` as they are written with ``@job`` or with a ``Job`` class; ``backoff`` may be one delay."""

    queue: str
    tries: int | None
    timeout: float | None
    backoff: float | Sequence[float] | None
    max_exceptions: int | None
    fail_on_timeout: bool | None


def options_of(wishes: Wishes) -> Options:
    """Raises ``TypeError`` for a wish that does not exist, and ``ConfigError`` for one that no worker would grant."""
    backoff = wishes.get("backoff")
    several = (backoff,) if isinstance(backoff, (int, float)) else backoff
    for key in ("tries", "max_exceptions"):
        _check_number(key, wishes.get(key), int)
    for key, value in (("timeout", wishes.get("timeout")), *(("backoff", delay) for delay in several or ())):
        _check_number(key, value, int, float)
    named: dict[str, Any] = {"queue": "default", **wishes, "backoff": tuple(map(float, several)) if several else None}
    return Options(**named)


def _check_number(key: str, value: object, *kinds: type) -> None:
    # What a payload holds is judged by its reader: there it would be ignored, or the job set aside.
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < _MOST):  # type: ignore[operator]
        raise ConfigError("@job", f"{key} cannot be {value!r}")


def wire(options: Options) -> dict[str, object]:
    """As Laravel's fields, so that a PHP worker respects them too. Source: Queue.php, createPayloadArray (13.x)."""
    backoff = options.backoff and ",".join(f"{delay:g}" for delay in options.backoff)
    return {
        "maxTries": options.tries,
        "maxExceptions": options.max_exceptions,
        "failOnTimeout": bool(options.fail_on_timeout),
        "backoff": backoff,
        "timeout": options.timeout,
    }


class Task(Protocol):
    """A handler with its arguments: what one attempt runs."""

    def run(self) -> object:
        """The work; a coroutine is run on the worker's loop."""

    @property
    def after_succeeded(self) -> Callable[[], object] | None:
        """The hook, if there is one."""

    def after_failed(self, error: BaseException) -> object: ...


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered name; ``bind`` takes keyword or positional arguments and raises ``TypeError`` for wrong ones."""

    name: str
    bind: Callable[..., Task]
    options: Options


class Registry:
    """Handlers by exact name."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def add(self, handler: Handler) -> None:
        """Raises ``ConfigError`` when another handler has the name."""
        if not handler.name.strip():
            raise ConfigError("@job", "a job needs a name")
        if handler.name in self._handlers:
            raise ConfigError("@job", f"two jobs are registered as {handler.name!r}")
        self._handlers[handler.name] = handler

    def find(self, name: str) -> Handler:
        """Raises ``UnknownJob``."""
        try:
            return self._handlers[name]
        except KeyError:
            raise UnknownJob(name) from None

    def names(self) -> list[str]:
        return sorted(self._handlers)


def check_runs(name: str, function: object) -> None:
    """Raises ``ConfigError`` for what would do nothing when it is called."""
    if not callable(function):
        raise ConfigError("@job", f"{name!r} is not a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError("@job", f"{name!r} is a generator: a call of it would do nothing")


def bound(handler: Handler, data: object) -> Task:
    """The task for a payload's data: an object calls by keyword, a list by position, ``""`` and null with nothing.

    Raises ``BadArguments``.
    """
    args, kwargs = _arguments(data)
    try:
        return handler.bind(*args, **kwargs)
    except TypeError as error:
        raise BadArguments(handler.name, error) from error


def by_name(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
    """``data`` for this call: an object of the arguments by name, a list where names cannot call the function."""
    signature = inspect.signature(function)
    given = signature.bind(*args, **kwargs)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:
        if given.kwargs:
            raise TypeError(
                f"{function.__qualname__} takes positional arguments: they cannot go with keywords in a job"
            )
        return list(given.args)
    names = dict(given.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            names |= names.pop(parameter.name, {})
    return names


def keywords(signature: inspect.Signature) -> tuple[set[str], set[str]]:
    """The parameters that can be given by name, and those of them that must be."""
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = signature.parameters.values()
    names = {one.name for one in parameters if one.kind in by_keyword}
    required = {
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }
    return names, required


def _arguments(data: object) -> tuple[list[Any], dict[str, Any]]:
    if data is None or data == "":
        return [], {}
    if isinstance(data, dict):
        return [], data
    return (data, {}) if isinstance(data, list) else ([data], {})


#: What ``job`` adds to: the handlers of this process.
REGISTRY = Registry()
