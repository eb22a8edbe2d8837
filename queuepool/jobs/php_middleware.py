"""The middleware that a job of PHP's carries in its ``$middleware``: carried out here, as far as Python can know it.

Source: Queue/Middleware/WithoutOverlapping.php, RateLimited.php, ThrottlesExceptions.php, both …WithRedis.php, Skip.php
(8.83 to 13.x).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from queuepool.config.values import LONGEST
from queuepool.errors import NeedsLaravel
from queuepool.jobs.current_job import Current
from queuepool.jobs.laravel_limits import LaravelRate, NoOverlap, Throttle, php_text
from queuepool.jobs.middleware import Middleware
from queuepool.payload.php_unserialize import PhpObject, PhpValue

Properties: TypeAlias = "Mapping[str, PhpValue]"
#: those of a handler, by whether they are in Redis, and their names
_Rates: TypeAlias = dict[tuple[bool, object], LaravelRate]
#: the properties that are numbers, and how many seconds one of each is; 1 for one that counts
_NUMBERS: Mapping[str, int] = MappingProxyType({
    "releaseAfter": 1, "expiresAfter": 1, "maxAttempts": 1, "decaySeconds": 1, "decayMinutes": 60,
    "retryAfterMinutes": 60,
})  # fmt: skip
_PHP = "Illuminate\\Queue\\Middleware\\"


def of_php(job: str, several: Iterable[PhpValue], declared: Iterable[object]) -> list[Middleware]:
    """The middleware of a PHP job that is carried out here. Raises ``NeedsLaravel`` for what only PHP knows.

    ``declared``: that of its handler, which knows the numbers of its rates.
    """
    rates: _Rates = {(one.in_redis, one.name): one for one in declared if isinstance(one, LaravelRate)}
    found = [one for one in several if isinstance(one, PhpObject) and one.class_name.removeprefix(_PHP) in _MADE]
    if lacking := [why for one in found if (why := _needs(one, rates))]:
        raise NeedsLaravel(job, [f"has the middleware {why}" for why in lacking], by_outcome=False)
    return [made for one in found if (made := _MADE[one.class_name.removeprefix(_PHP)](one.properties))]


def _needs(one: PhpObject, rates: _Rates) -> str:
    """What of it only PHP can do, in words; empty if all that it does is in its properties, or in the handler."""
    own, what = one.properties, one.class_name.removeprefix(_PHP)
    if own.get("connectionName") not in (None, "default"):
        return f"{what} on the connection {own['connectionName']!r:.60}: only that of the jobs is known here"
    if what in ("RateLimited", "RateLimitedWithRedis"):
        return _needs_of_rate(one, rates)
    if any(own.get(key) for key in ("whenCallback", "deleteWhenCallbacks", "failWhenCallbacks", "reportCallback")):
        return f"{one.class_name} with a closure"
    if php_text(own.get("key", "") or "") is None or not isinstance(own.get("prefix", ""), str):
        return f"{one.class_name} with a key that is not a text"
    wrong = [key for key, unit in _NUMBERS.items() if not _is_number(own.get(key), unit)]
    return f"{one.class_name} with the {wrong[0]} {own[wrong[0]]!r:.60}" if wrong else ""


def _needs_of_rate(one: PhpObject, rates: _Rates) -> str:
    own, what = one.properties, one.class_name.removeprefix(_PHP)
    name, later, skips = own.get("limiterName"), own.get("releaseAfter"), own.get("shouldRelease", True) is False
    in_redis = what == "RateLimitedWithRedis"
    rate, words = rates.get((in_redis, name)), f"LaravelRate({name!r}, …{', in_redis=True' if in_redis else ''}"
    if rate is None:
        return f"{what}, whose numbers are in PHP: declare around=[{words})]"
    if skips != rate.skips:
        return f"{what} with{'' if skips else 'out'} dontRelease(): declare {words}, skips={skips})"
    if not skips and later is not None and later != rate.delay:
        return f"{what} with releaseAfter(): declare {words}, release_after={later!r:.60})"
    return ""


def _is_number(value: PhpValue, unit: int) -> bool:
    """Whether it is a number of so many seconds that a delay may have, or is not set."""
    if value is None:
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) * unit <= LONGEST


def _overlap(own: Properties) -> Middleware:
    later, ends = own.get("releaseAfter", 0), own.get("expiresAfter")
    return NoOverlap(
        _escaped(own.get("key")),
        release_after=None if later is None else _seconds_in(later),
        expires_after=_seconds_in(ends) or None,
        shared=own.get("shareKey") is True,
        prefix=str(own.get("prefix", "laravel-queue-overlap:")),
    )


def _throttle(own: Properties, *, in_redis: bool = False) -> Middleware:
    minutes = own.get("decayMinutes")
    per = _seconds_in(own.get("decaySeconds", 600)) if minutes is None else 60 * _seconds_in(minutes)
    return Throttle(
        int(_seconds_in(own.get("maxAttempts", 10))) or 1,
        per=per or 1,
        by=_escaped(own.get("key")),
        by_job=own.get("byJob") is True,
        backoff=60 * _seconds_in(own.get("retryAfterMinutes")),
        prefix=str(own.get("prefix", "laravel_throttles_exceptions:")),
        in_redis=in_redis,
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
    return (php_text(value) or "").replace("{", "{{").replace("}", "}}")


def _seconds_in(value: PhpValue) -> float:
    """A number of PHP's; 0 for one that is not set."""
    return max(float(value), 0.0) if isinstance(value, (int, float)) else 0.0


_MADE: Mapping[str, Callable[[Properties], Middleware | None]] = MappingProxyType({
    "WithoutOverlapping": _overlap, "ThrottlesExceptions": _throttle, "Skip": _skip, "RateLimited": _declared,
    "RateLimitedWithRedis": _declared, "ThrottlesExceptionsWithRedis": partial(_throttle, in_redis=True),
})  # fmt: skip
