"""Checks of every push, whatever the call: refuses queues that no pool can serve and values that no store holds.

Errors begin with the name of the job, since a dispatch may be one of many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypedDict

from queuepool.config import values
from queuepool.config.settings import ConnectionSettings
from queuepool.config.urls import kind_of
from queuepool.errors import BadPayload
from queuepool.jobs.job_options import Delay, Options, Seconds, seconds_until
from queuepool.payload.lease import Lock
from queuepool.payload.limits import PlaceAsked
from queuepool.payload.options import EXPIRES, TAGS, checked_tags, payload_options_of
from queuepool.payload.unique_locks import new_lock
from queuepool.settlement.verdict import Backoff

#: characters of a key in the table ``cache_locks``; SQLite would hold more, but other databases do not
_LONGEST_KEY = 255
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


class Terms(NamedTuple):
    """How jobs are pushed, checked; times in seconds."""

    queue: str
    delay: float = 0.0
    #: how long their states are kept after they end; 0 = they are not tracked
    track: float = 0.0
    #: as payload fields
    options: Mapping[str, object] = _NO_FIELDS
    encrypted: bool = False
    #: the one job is pushed under this lock
    lock: Lock | None = None
    #: the one job is an object of a PHP class: its data as Laravel writes it
    command: Mapping[str, object] | None = None
    #: the places that each job will need, in the order of the jobs; empty = not known
    places: Sequence[Sequence[PlaceAsked]] = ()


def terms_of(
    name: str,
    queue: str,
    delay: Delay,
    track: Seconds = 0,
    options: Options | Mapping[str, object] | None = None,
    encrypted: bool = False,
    lock: Lock | None = None,
) -> Terms:
    """The terms for a push of this job (no name: of raw bytes); ``options`` as for ``Queue.push``, or a registered
    job's.

    Raises ``ValueError`` for a queue that no pool can serve, and for times and options that no worker understands.
    """
    try:
        check_queue(queue)
        return Terms(queue, seconds_until(delay), seconds_until(track), _fields_of(options), encrypted, lock)
    except ValueError as error:
        raise ValueError(f"{name}: {error}" if name else str(error)) from None


def _fields_of(options: Options | Mapping[str, object] | None) -> Mapping[str, object]:
    if isinstance(options, Options):  # checked where the job is defined
        return wire(options)
    return fields_of(options) if options else _NO_FIELDS


def check_queue(name: object) -> None:
    """Raise ``ValueError`` if no pool can serve a queue of this name."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not a queue name")
    _check_queue(name)


@lru_cache(maxsize=256)  # a program pushes to few queues
def _check_queue(name: str) -> None:
    values.queue(name)


def lock_of(name: str, identity: object, lasts: Seconds, settings: ConnectionSettings, url: str = "") -> Lock | None:
    """The unique lock that a push takes for ``lasts`` seconds; ``None`` without an identity. Raises ``ValueError``.

    ``url``: where the lock is, if it is not beside the job.
    """
    if identity is None:
        return None
    try:
        return _lock_of(name, str(identity), seconds_until(lasts), settings, url or settings.url)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _lock_of(name: str, identity: str, seconds: float, settings: ConnectionSettings, url: str) -> Lock | None:
    if not seconds:
        raise ValueError("unique_for must be above 0: such a lock would hold nothing")
    if "\0" in identity or not _is_text(identity):
        raise ValueError(f"the identity of a unique job cannot hold NUL or a lone surrogate, as {identity[:40]!r} does")
    lock = new_lock(name, identity, seconds)
    if lock and kind_of(url) == "sql":
        _check_length(lock.name, settings)
    return lock


def _check_length(name: str, settings: ConnectionSettings) -> None:
    from queuepool.stores.control import lock_prefix_of  # imported here: few jobs are unique

    if (length := len(lock_prefix_of(settings, "sql") + name)) > _LONGEST_KEY:
        raise ValueError(
            f"the key of its unique lock has {length} characters, a database holds {_LONGEST_KEY}: {name[:60]!r}...; "
            "use a digest as the identity"
        )


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# The keywords of a push, and its ``options`` as payload fields, in Laravel's spelling.


class BulkOptions(TypedDict, total=False):
    """The keywords of ``Queue.bulk``."""

    queue: str
    delay: Delay
    options: Mapping[str, object] | None
    encrypted: bool
    track: Seconds


class PushOptions(BulkOptions, total=False):
    """The keywords of ``Queue.push``."""

    unique_id: str | None
    unique_for: Seconds


#: payload fields, by their own names and by those of a PHP job's properties
_FIELDS = {
    "maxTries": "maxTries",
    "tries": "maxTries",
    "maxExceptions": "maxExceptions",
    "failOnTimeout": "failOnTimeout",
    "backoff": "backoff",
    "timeout": "timeout",
    "retryUntil": "retryUntil",
    "tags": TAGS,
}


def wire(options: Options) -> dict[str, object]:
    """The fields of a registered job's options, so that PHP workers respect them.

    Source: Queue.php, createPayloadArray (13.x).
    """
    backoff = options.backoff and _backoff_text(options.backoff)
    tags = {TAGS: list(options.tags)} if options.tags else {}
    ends = {EXPIRES: options.expires} if options.expires else {}
    return {
        "maxTries": options.tries,
        "maxExceptions": options.max_exceptions,
        "failOnTimeout": bool(options.fail_on_timeout),
        "backoff": backoff,
        "timeout": options.timeout,
        **tags,
        **ends,
    }


def fields_of(options: Mapping[str, object]) -> dict[str, object]:
    """The fields for the ``options`` of ``Queue.push``.

    Raises ``ValueError`` for an unknown option, or a value that no worker understands.
    """
    for name in options.keys() - _FIELDS:
        raise ValueError(f"there is no option {name!r}; there are: {', '.join(_FIELDS)}")
    fields = {_FIELDS[name]: _written(value) for name, value in options.items() if name != TAGS}
    if TAGS in options:
        fields[TAGS] = list(checked_tags(options[TAGS]))
    try:
        warnings = payload_options_of(fields, 0).warnings
    except BadPayload as error:
        raise ValueError(f"{error.reason} cannot be {fields[error.reason]!r}") from None
    if warnings:
        raise ValueError(warnings[0])
    return fields


def _written(value: object) -> object:
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Backoff):
        if value.jitter:
            raise ValueError("backoff: only the worker adds jitter: set it in @job; a payload holds plain delays")
        value = value.delays
    return _backoff_text(tuple(value)) if isinstance(value, (list, tuple)) else value


def _backoff_text(delays: tuple[object, ...]) -> str:
    """Seconds, separated by commas. Source: Queue.php, getJobBackoff (13.x)."""
    return ",".join(f"{delay:.15g}" if isinstance(delay, float) else str(delay) for delay in delays)
