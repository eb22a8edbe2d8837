"""The keywords of a push, and its ``options``, as Laravel writes them into the payload: its workers read only that."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

from queuepool.errors import BadPayload
from queuepool.jobs.job_options import Options, Seconds
from queuepool.payload.expiry import EXPIRES
from queuepool.payload.options import payload_options_of
from queuepool.payload.tags import TAGS, checked_tags
from queuepool.settlement.backoff import Backoff

if TYPE_CHECKING:
    from queuepool.jobs.delay import Delay


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


#: by the name in the payload, and of the PHP job's property
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
    """The fields of options as ``Queue.push`` takes them.

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
            raise ValueError("backoff: jitter is the worker's: write it with @job; a payload has plain delays")
        value = value.delays
    return _backoff_text(tuple(value)) if isinstance(value, (list, tuple)) else value


def _backoff_text(delays: tuple[object, ...]) -> str:
    """Seconds, separated by commas. Source: Queue.php, getJobBackoff (13.x)."""
    return ",".join(f"{delay:.15g}" if isinstance(delay, float) else str(delay) for delay in delays)
