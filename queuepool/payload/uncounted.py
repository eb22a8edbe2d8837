"""Changes a payload's number of attempts: to 0 for a retry, to the real number for a failed job's record.

A retry by hand also marks a job that could expire, so that it no longer does.
"""

from __future__ import annotations

import re

from queuepool.errors import BadPayload
from queuepool.payload import strict_json
from queuepool.payload.envelope import dump
from queuepool.payload.options import EXPIRES, RETRIED
from queuepool.payload.strict_json import values_of

_COUNT = re.compile(rb"\d++(?=\s*+[,}])")


def uncounted(raw: bytes) -> bytes:
    """The payload with its attempts set to 0, as ``counted`` does."""
    return counted(raw, 0)


def counted(raw: bytes, attempts: int) -> bytes:
    """The payload with its attempts set to this number and every other byte as it was.

    Unchanged if it has no ``attempts`` or is not a job; encoded again if they are not a plain number.
    """
    number = b"%d" % attempts
    head, found, tail = raw.rpartition(b'"attempts":')
    # Ours and Laravel's end like this. Only a key that ends in an escaped quote and this name looks the same.
    if found and re.fullmatch(rb"\d+\}\s*", tail) and not head.endswith(b"\\"):
        return head + found + number + b"}"
    try:
        fields = strict_json.read_object(raw)
    except BadPayload:
        return raw
    if "attempts" not in fields:
        return raw
    count = _top_level_count(raw)
    return raw[: count.start()] + number + raw[count.end() :] if count else dump(fields | {"attempts": attempts})


def wanted_again(payload: str) -> str:
    """The payload of a failed job that is retried by hand; unchanged unless it says when it expires."""
    if EXPIRES not in payload:
        return payload
    try:
        fields = strict_json.read_object(payload.encode())
    except (BadPayload, UnicodeEncodeError):
        return payload
    if EXPIRES not in fields:
        return payload
    attempts = {"attempts": fields.pop("attempts", 0)}  # last, where it is found at once
    return dump({**fields, RETRIED: True, **attempts}).decode()


def _top_level_count(raw: bytes) -> re.Match[bytes] | None:
    return next(filter(None, (_COUNT.match(raw, start) for start in values_of(raw, b'"attempts"'))), None)
