"""The middleware that a job of PHP's carries in its ``$middleware``: carried out here, as far as Python can know it.

Source: Queue/Middleware/WithoutOverlapping.php, RateLimited.php, ThrottlesExceptions.php, Skip.php (8.83 to 13.x).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from queuepool.errors import NeedsLaravel
from queuepool.jobs.current_job import Current
from queuepool.jobs.laravel_limits import LaravelRate, NoOverlap, Throttle
from queuepool.jobs.middleware import Middleware
from queuepool.payload.php_unserialize import PhpObject, PhpValue

Properties: TypeAlias = "Mapping[str, PhpValue]"
_PHP = "Illuminate\\Queue\\Middleware\\"


def of_php(job: str, several: Iterable[PhpValue], declared: Iterable[object]) -> list[Middleware]:
    """The middleware of a PHP job that is carried out here. Raises ``NeedsLaravel`` for what only PHP knows.

    ``declared``: that of its handler, which knows the numbers of its rates.
    """
    rates = {one.name for one in declared if isinstance(one, LaravelRate)}
    found = [one for one in several if isinstance(one, PhpObject) and one.class_name.removeprefix(_PHP) in _MADE]
    unknown = [one for one in found if not _is_known(one.class_name.removeprefix(_PHP), one.properties, rates)]
    if unknown:
        raise NeedsLaravel(job, [f"has the middleware {_words_of(one)}" for one in unknown], by_outcome=False)
    made = (_MADE[one.class_name.removeprefix(_PHP)](one.properties) for one in found)
    return [one for one in made if one]


def _is_known(name: str, own: Properties, rates: Container[str]) -> bool:
    """Whether all that it does is in its properties, or in the handler."""
    if name == "RateLimited":
        return own.get("limiterName") in rates
    closures = ("whenCallback", "deleteWhenCallbacks", "failWhenCallbacks", "reportCallback")
    return not any(own.get(key) for key in closures) and not isinstance(own.get("retryAfterMinutes"), PhpObject)


def _words_of(one: PhpObject) -> str:
    if one.class_name == f"{_PHP}RateLimited":
        name = one.properties.get("limiterName")
        return f"RateLimited, whose numbers are in PHP: declare around=[LaravelRate({name!r}, …)]"
    return f"{one.class_name} with a closure"


def _overlap(own: Properties) -> Middleware:
    later, ends = own.get("releaseAfter", 0), own.get("expiresAfter")
    return NoOverlap(
        _escaped(own.get("key")),
        release_after=None if later is None else _seconds_in(later),
        expires_after=_seconds_in(ends) or None,
        shared=own.get("shareKey") is True,
        prefix=str(own.get("prefix", "laravel-queue-overlap:")),
    )


def _throttle(own: Properties) -> Middleware:
    minutes = own.get("decayMinutes")
    per = _seconds_in(own.get("decaySeconds", 600)) if minutes is None else 60 * _seconds_in(minutes)
    return Throttle(
        int(_seconds_in(own.get("maxAttempts", 10))) or 1,
        per=per or 1,
        by=_escaped(own.get("key")),
        by_job=own.get("byJob") is True,
        backoff=60 * _seconds_in(own.get("retryAfterMinutes")),
        prefix=str(own.get("prefix", "laravel_throttles_exceptions:")),
    )


def _skip(own: Properties) -> Middleware | None:
    return skipped if own.get("skip") is True else None


def _declared(own: Properties) -> Middleware | None:
    """The handler has it."""
    return None


def skipped(job: Current) -> Iterator[None]:
    """Laravel's ``Skip``, whose condition was true at the dispatch."""
    job.skip("its middleware Skip says so")
    return
    yield


def _escaped(value: PhpValue) -> str:
    """A key of PHP's as a ``by``, in which braces have a meaning."""
    return "" if value is None else str(value).replace("{", "{{").replace("}", "}}")


def _seconds_in(value: PhpValue) -> float:
    """A number of PHP's; 0 for anything else, such as a date."""
    return max(float(value), 0.0) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


_MADE: Mapping[str, Callable[[Properties], Middleware | None]] = MappingProxyType({
    "WithoutOverlapping": _overlap, "ThrottlesExceptions": _throttle, "Skip": _skip, "RateLimited": _declared,
})  # fmt: skip
