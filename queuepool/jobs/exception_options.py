"""``retry_on`` and ``fail_on``: the classes of exceptions that a job names."""

from __future__ import annotations

from collections.abc import Iterable

from queuepool.errors import AttemptLost, ConfigError, JobError
from queuepool.jobs.retry import Retry

#: as written: one class or several
Classes = type[BaseException] | Iterable[type[BaseException]]
_EXAMPLE = "write classes: (TimeoutError, ConnectionError)"


def classes_of(key: str, value: object) -> tuple[type[BaseException], ...]:
    """The classes as ``isinstance`` takes them. Raises ``ConfigError`` for what no handler can raise."""
    several = (value,) if isinstance(value, (type, str)) or not isinstance(value, Iterable) else tuple(value)
    if not several:
        raise ConfigError("@job", f"{key} is empty: name an exception, or leave it out")
    return tuple(_class_of(key, one) for one in several)


def check_both(retry_on: Iterable[type[BaseException]], fail_on: tuple[type[BaseException], ...]) -> None:
    """Raises ``ConfigError`` for a class in ``retry_on`` after which the job would never be retried."""
    for one in retry_on:
        if issubclass(one, JobError):
            raise ConfigError("@job", f"retry_on: {one.__qualname__} is a JobError, which always fails a job")
        if issubclass(one, fail_on):
            [wider] = [other for other in fail_on if issubclass(one, other)][:1]
            which = "is also in fail_on" if one is wider else f"is a {wider.__qualname__}, which is in fail_on"
            raise ConfigError("@job", f"retry_on: {one.__qualname__} {which}, so it would never be retried")


def _class_of(key: str, one: object) -> type[BaseException]:
    if not isinstance(one, type) or not issubclass(one, BaseException):
        raise ConfigError("@job", f"{key} cannot have {one!r}: {_EXAMPLE}")
    if issubclass(one, Retry):
        raise ConfigError("@job", f"{key} cannot have {one.__qualname__}: who raises it asks for another try")
    if issubclass(one, AttemptLost):
        why = "fail_on_timeout and tries decide on a timeout, max_crashes on a worker's death"
        raise ConfigError("@job", f"{key} cannot have {one.__qualname__}, which no handler raises: {why}")
    return one
