"""A payload's options, which apply to every attempt, its expiry and its tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import ceil, floor
from typing import Any, TypeGuard

from queuepool.errors import BadPayload

#: the key with the seconds for which a tracked job's state is kept; as a text with a plus, it is only a default
TRACK = "qpTrack"
#: the key with the seconds that a job's unique lock lasts, if that is not a day
UNIQUE_FOR = "qpUniqueFor"
#: seconds that no delay or Unix time reaches: beyond the year 5000 another unit must be meant
_NO_TIME = 1e11
#: seconds that no backoff reaches
_NO_DELAY = 1e10
#: of any length: a job with an unregistered name fails, but is not quarantined
NAME = re.compile(r"[^\x00-\x1f\x7f]+")
#: a text that PHP treats as a number, like Laravel's ``$tries = env('TRIES')``
_NUMERIC = re.compile(r"[ \t\n\r\v\f]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\r\v\f]*")
_LONGEST_NUMBER = 40


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
    #: how long the job's state is kept after its end; ``None`` = the pool decides
    track: float | None = None
    #: the same where neither the handler nor the pool decides; a schedule writes it
    usual_track: float | None = None
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
    max_tries, max_exceptions, fail_on_timeout, backoff, timeout, retry_until, timeout_at, track = limits
    warnings: list[str] = []
    name, is_usual = name or job, isinstance(track, str) and track.startswith("+")
    kept = _seconds(track, TRACK, warnings)
    return PayloadOptions(
        job=_name(job) if job else "",
        display_name=_name(name) if name else "",
        max_tries=_count(max_tries, "maxTries", _whole_tries),
        max_exceptions=_count(max_exceptions, "maxExceptions", ceil),
        fail_on_timeout=fail_on_timeout != "0" and bool(fail_on_timeout),
        backoff=_backoff(backoff, warnings),
        timeout=_seconds(timeout, "timeout", warnings),
        retry_until=_seconds(retry_until, "retryUntil", warnings) or _seconds(timeout_at, "timeoutAt", warnings),
        track=None if is_usual else kept,
        usual_track=kept if is_usual else None,
        warnings=tuple(warnings),
    )


#: the fields that ``PayloadOptions`` are read from. Most jobs have the same options as the one before, so they are
#: cached; by type too, since ``true`` equals 1 but is not a number of tries
KEYS = (
    "job", "displayName", "maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil", "timeoutAt",
    TRACK,
)  # fmt: skip
#: bytes of a payload above which its options are not cached
_CACHED_BYTES = 16 * 1024
_cached_options = lru_cache(maxsize=256, typed=True)(_read_options)


def check_name(name: object) -> None:
    """Raise ``BadPayload`` for what cannot be the name of a job."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadPayload(f"{name!r} is not a job name")


def _name(value: object) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise BadPayload("job")
    return value


def _count(value: object, key: str, whole: Callable[[float], int]) -> int | None:
    if value is None:
        return None
    number = _number(value)
    if not is_time(number) or not number < 2**31:
        raise BadPayload(key)
    return number if isinstance(number, int) else whole(number)


def _whole_tries(tries: float) -> int:
    """As PHP, which begins an attempt while its number is at most ``tries``; not 0, which would mean no limit."""
    return max(floor(tries), 1)


def _number(value: object) -> object:
    """The number that a text means to PHP; any other value unchanged."""
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER or not _NUMERIC.fullmatch(value):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number


def _seconds(value: object, key: str, warnings: list[str]) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if is_time(number):
        return float(number)
    warnings.append(f"{key} {str(value)[:40]!r} is not a number of seconds")
    return None


def is_time(value: object) -> TypeGuard[int | float]:
    """Whether the value is a plausible number of seconds, as a delay or as Unix time."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _NO_TIME


def _backoff(value: object, warnings: list[str]) -> tuple[float, ...] | None:
    """Seconds, rounded to milliseconds. Laravel writes ``"1,5,30"``; hand-made payloads have a number or a list."""
    if value is None or value in ("", {}):
        return None
    parts = value if isinstance(value, list) else str(value).split(",")
    delays = tuple(round(float(part), 3) for part in map(_number, parts) if is_time(part) and part < _NO_DELAY)
    if len(delays) != len(parts):
        warnings.append(f"backoff {str(value)[:40]!r} is not a list of seconds")
    return delays or None


# Until when a job may begin, by ``@job(expires=…)``; after that it is dropped.
#
# Laravel's workers ignore it. A job that is retried by hand no longer expires.

#: the keys of the Unix second, and of the mark of a retry by hand, which no signature covers
EXPIRES, RETRIED = "qpExpires", "qpRetried"


def late_by(fields: Mapping[str, Any], now: float) -> float:
    """How many seconds too late a job with this payload would begin; 0 if it may begin.

    ``now`` is in Unix seconds, by the store's clock.
    """
    until = fields.get(EXPIRES)
    return max(now - until, 0.0) if is_time(until) and not fields.get(RETRIED) else 0.0


# A job's tags: words in its payload, as Horizon writes them and searches for them.

#: the key of the tags
TAGS = "tags"
#: most tags of a job, and most characters of one
_MOST, _LONGEST = 32, 128


def tags_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a payload with these fields: only texts, the first 32, each cut to 128 characters."""
    found = fields.get(TAGS)
    # PHP writes a list with a gap as an object.
    listed = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return tuple(tag[:_LONGEST] for tag in islice(listed, _MOST) if isinstance(tag, str))


def checked_tags(value: object) -> tuple[str, ...]:
    """The tags for a new payload. Raises ``ValueError``."""
    if not isinstance(value, (list, tuple)) or len(value) > _MOST:
        raise ValueError(f"tags cannot be {value!r}: give a list of at most {_MOST} strings")
    for tag in value:
        if not isinstance(tag, str) or not 0 < len(tag) <= _LONGEST or not tag.isprintable():
            raise ValueError(f"tags: {tag!r} is not a string of 1 to {_LONGEST} printable characters")
    return tuple(value)
