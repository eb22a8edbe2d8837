"""The ``options`` of a push, as Laravel writes them into the payload: its workers read them nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from queuepool.errors import BadPayload
from queuepool.jobs.job_options import backoff_text
from queuepool.payload.options import payload_options_of

#: by the name in the payload, and of the PHP job's property
_FIELDS = {
    "maxTries": "maxTries",
    "tries": "maxTries",
    "maxExceptions": "maxExceptions",
    "failOnTimeout": "failOnTimeout",
    "backoff": "backoff",
    "timeout": "timeout",
    "retryUntil": "retryUntil",
}


def fields_of(options: Mapping[str, object]) -> dict[str, object]:
    """The payload's fields. Raises ``ValueError`` for an unknown option, or a value that no worker understands."""
    for name in options.keys() - _FIELDS:
        raise ValueError(f"there is no option {name!r}; there are: {', '.join(_FIELDS)}")
    fields = {_FIELDS[name]: _written(value) for name, value in options.items()}
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
    return backoff_text(tuple(value)) if isinstance(value, (list, tuple)) else value
