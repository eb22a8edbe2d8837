"""A payload's options, which hold for every attempt: parsed once for all payloads with equal options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

from queuepool.errors import BadPayload

#: seconds, for delays and points in time alike: beyond the year 5000 another unit must be meant
_NO_TIME = 1e11
#: of any length: a job with an unregistered name fails and is not quarantined
NAME = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """A payload's job name and limits.

    Times in seconds, ``retry_until`` in Unix seconds, ``None`` = not set.
    """

    job: str
    display_name: str
    max_tries: int | None = None
    max_exceptions: int | None = None
    fail_on_timeout: bool = False
    backoff: tuple[float, ...] | None = None
    timeout: float | None = None
    retry_until: float | None = None
    #: warnings: what was not understood and is ignored
    warnings: tuple[str, ...] = ()


def payload_options_of(fields: Mapping[str, Any], size: int) -> PayloadOptions:
    """The options of a payload with these fields and ``size`` bytes. Raises ``BadPayload``."""
    given = [*map(fields.get, KEYS)]
    if size > _CACHED_BYTES:
        return _read_options(*given)
    try:
        return _cached_options(*given)
    except TypeError:  # not hashable: one of them is a list
        return _read_options(*given)


def _read_options(job: Any, name: Any, *limits: Any) -> PayloadOptions:
    max_tries, max_exceptions, fail_on_timeout, backoff, timeout, retry_until, timeout_at = limits
    warnings: list[str] = []
    name = name or job
    return PayloadOptions(
        job=_name(job) if job else "",
        display_name=_name(name) if name else "",
        max_tries=_count(max_tries, "maxTries"),
        max_exceptions=_count(max_exceptions, "maxExceptions"),
        fail_on_timeout=bool(fail_on_timeout),
        backoff=_backoff(backoff, warnings),
        timeout=_seconds(timeout, "timeout", warnings),
        retry_until=_seconds(retry_until, "retryUntil", warnings) or _seconds(timeout_at, "timeoutAt", warnings),
        warnings=tuple(warnings),
    )


#: the fields that ``PayloadOptions`` are read from. Most jobs have the options of the one before, so these are cached;
#: by type too, since ``true`` equals 1 but is not a number of tries
KEYS = (
    "job", "displayName", "maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil", "timeoutAt",
)  # fmt: skip
#: bytes of a payload above which its options are not cached
_CACHED_BYTES = 16 * 1024
_cached_options = lru_cache(maxsize=256, typed=True)(_read_options)


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadPayload("job")
    return value


def _count(value: object, key: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise BadPayload(key)
    return value


def _seconds(value: object, key: str, warnings: list[str]) -> float | None:
    if value is None:
        return None
    if is_time(value):
        return float(value)
    warnings.append(f"{key} {str(value)[:40]!r} is not a number of seconds")
    return None


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether the value is a plausible number of seconds, as a delay or as Unix time."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _NO_TIME


def _backoff(value: object, warnings: list[str]) -> tuple[float, ...] | None:
    """In seconds, rounded to milliseconds. Laravel writes ``"1,5,30"``; hand-made payloads hold a number or a list."""
    if value is None or value in ("", {}):
        return None
    parts = value if isinstance(value, list) else str(value).split(",")
    delays = tuple(round(float(part), 3) for part in map(str, parts) if re.fullmatch(r"\s*\d{1,10}(\.\d+)?\s*", part))
    if len(delays) != len(parts):
        warnings.append(f"backoff {str(value)[:40]!r} is not a list of seconds")
    return delays or None
