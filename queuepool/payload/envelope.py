"""A job's envelope: Laravel's JSON, decoded strictly, and our own written as Laravel writes it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid as uuids
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeGuard

from queuepool.errors import BadPayload, NotSendable
from queuepool.payload import strict_json
from queuepool.payload.options import NAME, PayloadOptions, is_time, payload_options_of
from queuepool.payload.strict_json import MOST_BYTES as MOST_BYTES
from queuepool.payload.to_json import as_json

#: The class that every object job of Laravel goes through; its own name is in ``data.commandName``.
OBJECT_JOB = "Illuminate\\Queue\\CallQueuedHandler@call"
#: made once: json.dumps would make one for every payload
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=as_json)
_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")


class Payload(NamedTuple):
    """One reserved job."""

    id: str
    uuid: str
    data: Any
    attempts: int
    terms: PayloadOptions
    #: whether it came with an id of its own
    identified: bool = True
    #: what was not understood and therefore ignored
    oddities: tuple[str, ...] = ()
    #: as it came: when it was pushed, in Unix seconds, and after how many more it was due
    created_at: object = None
    delay: object = None

    def waited(self, begun: float) -> float | None:
        """Seconds from when it could begin; to the second, as Laravel writes both. Of a later try nobody knows."""
        created, delay = self.created_at, self.delay or 0
        if self.attempts > 1 or not (is_time(created) and is_time(delay)):
            return None
        return max(0, int(begun - created - delay))

    @property
    def name(self) -> str:
        """The name that a handler is registered under."""
        terms = self.terms
        if terms.job == OBJECT_JOB and isinstance(self.data, dict):
            return str(self.data.get("commandName") or terms.display_name)
        return terms.job


def decode(raw: bytes, attempts: int | None = None) -> Payload:
    """Read a payload; ``attempts`` where the store counts them and not the payload.

    Raises ``BadPayload`` for what cannot be a job: not one JSON object in UTF-8, ambiguous (a key
    twice), deeper than 999, a number that is none, an id or a name that cannot be printed.
    """
    return payload_of(strict_json.read_object(raw), raw, attempts)


def payload_of(fields: Mapping[str, Any], raw: bytes, attempts: int | None = None) -> Payload:
    """What these fields say; ``raw`` names a job that came without an id. Raises ``BadPayload``."""
    get, terms = fields.get, payload_options_of(fields, len(raw))
    said, given = get("uuid"), get("id")
    uuid = said if _is_word(said) else ""
    own = said if given is None else given
    return Payload(
        uuid if uuid and own == uuid else _identity(own, raw),
        uuid,
        get("data"),
        int(get("attempts") or 0) if attempts is None else attempts,
        terms,
        own is not None,
        terms.oddities if uuid or not said else (*terms.oddities, "uuid is not 1 to 128 printable characters"),
        get("createdAt"),
        get("delay"),
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
    if not NAME.fullmatch(name):
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
    try:
        if seal:
            fields["qp"] = seal(fields)
        return identity, dump(fields | {"delay": delay or None, "attempts": 0})
    except NotSendable as error:
        raise _named(name, data) or error from error.__cause__


def _named(name: str, data: object) -> NotSendable | None:
    """Which argument of the job cannot go."""
    arguments = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, value in arguments:
        try:
            dump({str(key): value})
        except NotSendable as error:
            return NotSendable(f"argument {key!r} of {name}: {error}")
    return None


def dump(fields: Mapping[str, object]) -> bytes:
    """Compact JSON in UTF-8. Raises ``NotSendable`` for what it cannot hold, and ``BadPayload`` for too much of it."""
    try:
        raw = _ENCODER.encode(fields).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSendable(str(error)) from error
    if len(raw) > MOST_BYTES:
        raise BadPayload(f"{len(raw)} bytes, at most {MOST_BYTES} are allowed")
    return raw


def uncounted(raw: bytes) -> bytes:
    """The payload as if it had never been attempted; one that counts no attempts, or is no job, as it is."""
    head, found, tail = raw.rpartition(b'"attempts":')
    if found and re.fullmatch(rb"\d+\}\s*", tail):  # ours and Laravel's: nothing else can end so
        return head + found + b"0}"
    try:
        fields = strict_json.read_object(raw)
    except BadPayload:
        return raw
    return dump(fields | {"attempts": 0}) if "attempts" in fields else raw


def _is_word(value: object) -> TypeGuard[str]:
    """Whether it can be shown: people have to type it, and failed jobs are recorded under it."""
    if not isinstance(value, str):
        return False
    # Nearly all are plain, which is seen sooner.
    return (0 < len(value) <= 128 and value.isascii() and value.isprintable()) or bool(_ID.fullmatch(value))


def _identity(given: object, raw: bytes) -> str:
    """Its id, else its uuid, else a digest that stays the same from attempt to attempt."""
    if given is None:
        return hashlib.sha256(re.sub(rb'"attempts"\s*:\s*\d+', b"", raw)).hexdigest()[:32]
    if not _is_word(given):
        raise BadPayload("id")
    return given
