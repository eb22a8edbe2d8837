"""Checks that a function or a class can be a job, made where it is defined, not hours later in a worker."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from queuepool.errors import BadPayload, ConfigError
from queuepool.payload.options import check_name

_REMEDY = 'give it one: @job("shop.send")'


def check_runs(name: str, function: object) -> None:
    """Raises ``ConfigError`` for what a worker cannot run: not a function, a generator, or a method."""
    if not callable(function):
        raise ConfigError("@job", f"{name!r} is not a function{_remedy(function)}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError("@job", f"{name!r} is a generator: calling it would do nothing")
    if _is_method(function):
        raise ConfigError("@job", f"{name!r} is a method, and a worker has no object to call it on: write a Job class")


def _remedy(function: object) -> str:
    """The advice for what only looks like a function in its class: a class method, a property."""
    if not hasattr(type(function), "__get__"):
        return ""
    kind = type(function).__name__
    return f" but a {kind}, which a worker cannot call: write a plain function that calls it, or a Job class"


def check_job_name(name: object) -> None:
    """Raises ``ConfigError`` for a name that no payload can have."""
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("@job", f"a job needs a name, not {name!r}")
    try:
        check_name(name)
        name.encode()
    except (BadPayload, UnicodeEncodeError):
        raise ConfigError("@job", f"{name!r} is not a job name: it contains unprintable characters") from None


def name_of(function: Any) -> str:
    """The default name of a job: ``module.function``. Raises ``ConfigError`` for a function without a name."""
    name = getattr(function, "__qualname__", "")
    if not name:
        raise ConfigError("@job", f"{function!r} has no name: {_REMEDY}")
    if "<lambda>" in name:
        raise ConfigError("@job", f"a lambda has no name: {_REMEDY}")
    if "<locals>" in name:
        raise ConfigError("@job", f"{name!r} is defined inside a function, so it cannot be imported by name: {_REMEDY}")
    return written_name(function)


def written_name(target: Any) -> str:
    """``module.name`` of a function or class, wherever it is defined."""
    return f"{_module_of(target.__module__)}.{target.__qualname__}"


def check_is_known(name: str) -> None:
    """Called at a dispatch. Raises ``ConfigError`` for a job defined in ``__main__``, which no worker can import."""
    if name.startswith("__main__."):
        program = Path(getattr(sys.modules["__main__"], "__file__", "this session")).name
        how = 'import it from its module, run that with python -m, or give it a name: @job("shop.send"); put what the'
        how += " module runs as a program under if __name__ == '__main__', since a worker imports it"
        own_name = name.removeprefix("__main__.")
        raise ConfigError("@job", f"{own_name!r} is defined in {program}, which runs as __main__: {how}")


def check_handle(name: str, handle: Any) -> None:
    """Check a ``Job`` class's ``handle``. Raises ``ConfigError`` if it needs more than the job itself."""
    check_runs(name, handle.__get__(object()))
    for parameter in list(inspect.signature(handle).parameters.values())[1:]:
        if parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            raise ConfigError("@job", f"{name}.handle takes {parameter.name!r}: a job's arguments are its fields")


def around_of(value: object) -> tuple[Callable[..., Any], ...]:
    """What ``around=`` of ``@job`` gives. Raises ``ConfigError``."""
    if not isinstance(value, (list, tuple)):
        raise ConfigError("@job", f"around cannot be {value!r}: give a list, like [timed]")
    for one in value:
        if not any(is_kind(way) for way in ways_of(one) for is_kind in _GENERATORS):
            why = "it must be a generator function with one yield, which takes the job"
            raise ConfigError("@job", f"around: {called(one)}: {why}")
    return tuple(value)


def predicate_of(value: object) -> Callable[..., object] | None:
    """What ``skip_if=`` of ``@job`` gives. Raises ``ConfigError``."""
    if value is not None and not callable(value):
        raise ConfigError("@job", f"skip_if cannot be {value!r}: give a function of the job's arguments")
    return value


_GENERATORS = inspect.isgeneratorfunction, inspect.isasyncgenfunction


def called(one: object) -> str:
    """How messages name a middleware or a predicate."""
    return str(getattr(one, "__qualname__", None) or type(one).__qualname__)


def ways_of(one: object) -> tuple[object, object]:
    """The function, or how an object is called."""
    return one, getattr(type(one), "__call__", None)  # noqa: B004 - to know which kind of function it is


def _is_method(function: Any) -> bool:
    """A guess: a function in a class whose first parameter is ``self`` or ``cls``."""
    defined_in = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(function) or not defined_in or defined_in.endswith("<locals>"):
        return False
    return next(iter(inspect.signature(function).parameters), "") in ("self", "cls")


def _module_of(name: str) -> str:
    """The name under which other modules import it, even if it runs by ``python -m``."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec.name.removesuffix(".__main__") if name == "__main__" and spec else name
