"""A job's envelope: Laravel's JSON, decoded strictly, and our own written as Laravel writes it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid as uuids
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queuepool import strict_json
from queuepool.errors import BadPayload

#: The class that every object job of Laravel goes through; its own name is in ``data.commandName``.
OBJECT_JOB = "Illuminate\\Queue\\CallQueuedHandler@call"
MOST_BYTES = 16 * 1024 * 1024
#: seconds, delays and moments alike: beyond the year 5000 somebody meant something else
_NO_TIME = 1e11
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
#: of any length: a name that nobody registered fails, it is not set aside
_NAME = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Payload:
    """One reserved job; times in seconds, ``retry_until`` in Unix seconds, ``None`` = not said."""

    id: str
    uuid: str
    job: str
    display_name: str
    data: Any
    attempts: int
    max_tries: int | None = None
    max_exceptions: int | None = None
    fail_on_timeout: bool = False
    backoff: tuple[float, ...] | None = None
    timeout: float | None = None
    retry_until: float | None = None
    #: whether it came with an id of its own
    identified: bool = True
    #: what was not understood and therefore ignored
    oddities: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that a handler is registered under."""
        if self.job == OBJECT_JOB and isinstance(self.data, dict):
            return str(self.data.get("commandName") or self.display_name)
        return self.job


def decode(raw: bytes) -> Payload:
    """Read a payload.

    Raises ``BadPayload`` for what cannot be a job: not one JSON object in UTF-8, ambiguous (a key
    twice), deeper than 999, a number that is none, an id or a name that cannot be printed.
    """
    return payload_of(strict_json.read_object(raw), raw)


def payload_of(fields: Mapping[str, Any], raw: bytes) -> Payload:
    """What these fields say; ``raw`` names a job that came without an id. Raises ``BadPayload``."""
    odd: list[str] = []
    job = fields.get("job")
    name = fields.get("displayName") or job
    return Payload(
        id=_identity(fields, raw),
        uuid=_uuid(fields.get("uuid"), odd),
        job=_printable(job, "job", _NAME) if job else "",
        display_name=_printable(name, "job", _NAME) if name else "",
        data=fields.get("data"),
        attempts=int(fields.get("attempts") or 0),
        max_tries=_count(fields, "maxTries"),
        max_exceptions=_count(fields, "maxExceptions"),
        fail_on_timeout=bool(fields.get("failOnTimeout")),
        backoff=_backoff(fields.get("backoff"), odd),
        timeout=_seconds(fields, "timeout", odd),
        retry_until=_seconds(fields, "retryUntil", odd) or _seconds(fields, "timeoutAt", odd),
        identified=_own_id(fields) is not None,
        oddities=tuple(odd),
    )


def encode(
    name: str,
    data: object,
    *,
    options: Mapping[str, object] | None = None,
    display_name: str | None = None,
    created_at: int,
    delay: float = 0,
    seal: Callable[[dict[str, object]], object] | None = None,
) -> tuple[str, bytes]:
    """A new payload and its id, with Laravel's fields in Laravel's order and ``attempts`` last.

    ``options`` may hold ``maxTries``, ``maxExceptions``, ``failOnTimeout``, ``backoff``, ``timeout``
    and ``retryUntil``; what is missing is left to the worker. ``seal`` gives the signature of the fields
    that nobody may change on the way: all but ``delay`` and ``attempts``.
    Source: Queue.php, createPayloadArray (13.x).
    """
    if not _NAME.fullmatch(name):
        raise BadPayload(f"{name!r} is no name for a job")
    identity = str(uuids.UUID(bytes=os.urandom(16), version=4))
    given = options or {}
    fields: dict[str, object] = {
        "uuid": identity,
        "displayName": display_name or name.split("@", 1)[0],
        "job": name,
        "maxTries": given.get("maxTries"),
        "maxExceptions": given.get("maxExceptions"),
        "failOnTimeout": given.get("failOnTimeout", False),
        "backoff": given.get("backoff"),
        "timeout": given.get("timeout"),
        "retryUntil": given.get("retryUntil"),
        "data": data,
        "createdAt": created_at,
        "id": identity,
    }
    if seal:
        fields["qp"] = seal(fields)
    return identity, dump(fields | {"delay": delay or None, "attempts": 0})


def dump(fields: Mapping[str, object]) -> bytes:
    """Compact JSON in UTF-8. Raises ``BadPayload`` for what JSON cannot hold, and for too much of it."""
    try:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        raw = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadPayload(f"its data is not JSON ({error})") from error
    if len(raw) > MOST_BYTES:
        raise BadPayload(f"{len(raw)} bytes, at most {MOST_BYTES} are allowed")
    return raw


def _identity(fields: Mapping[str, Any], raw: bytes) -> str:
    """Its id, else its uuid, else a digest that stays the same from attempt to attempt."""
    given = _own_id(fields)
    if given is not None:
        return _printable(given, "id")
    return hashlib.sha256(re.sub(rb'"attempts"\s*:\s*\d+', b"", raw)).hexdigest()[:32]


def _uuid(value: object, odd: list[str]) -> str:
    """Any word that can be shown: failed jobs are recorded under it, and people have to type it."""
    if not value:
        return ""
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    odd.append("uuid is not 1 to 128 printable characters")
    return ""


def _own_id(fields: Mapping[str, Any]) -> object:
    given = fields.get("id")
    return fields.get("uuid") if given is None else given


def _printable(value: object, what: str, pattern: re.Pattern[str] = _ID) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadPayload(what)
    return value


def _count(fields: Mapping[str, Any], key: str) -> int | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise BadPayload(key)
    return value


def _seconds(fields: Mapping[str, Any], key: str, odd: list[str]) -> float | None:
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _NO_TIME:
        return float(value)
    odd.append(f"{key} {str(value)[:40]!r} is not a number of seconds")
    return None


def _backoff(value: object, odd: list[str]) -> tuple[float, ...] | None:
    """Laravel writes ``"1,5,30"``; hand-made payloads hold a number or a list."""
    if value is None or value in ("", {}):
        return None
    parts = value if isinstance(value, list) else str(value).split(",")
    delays = tuple(float(part) for part in map(str, parts) if re.fullmatch(r"\s*\d{1,10}(\.\d+)?\s*", part))
    if len(delays) != len(parts):
        odd.append(f"backoff {str(value)[:40]!r} is not a list of seconds")
    return delays or None
