"""A job's envelope: Laravel's JSON, decoded strictly and encoded as Laravel encodes it.

The number of its attempts is set in the bytes: to 0 for a retry, to the real number for a failed job's record.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import uuid as uuids
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeGuard

from queuepool.errors import BadPayload, NotSendable
from queuepool.payload import strict_json
from queuepool.payload.members import ARGS, FLOW, PHP_MEMBER
from queuepool.payload.options import (
    EXPIRES,
    KEYS,
    RETRIED,
    TAGS,
    UNIQUE_FOR,
    PayloadOptions,
    check_name,
    is_time,
    payload_options_of,
    tags_in,
)
from queuepool.payload.strict_json import MAX_BYTES as MAX_BYTES
from queuepool.payload.strict_json import as_json, check_readable, values_of
from queuepool.payload.wrappers import WRAPPERS

#: the class that runs all of Laravel's object jobs; a job's own class is in ``data.commandName``
OBJECT_JOB = "Illuminate\\Queue\\CallQueuedHandler@call"
#: the jobs that are an object of a PHP class
OBJECT_JOBS = frozenset((OBJECT_JOB, PHP_MEMBER))
#: where the payload holds Laravel's context. Source: Log/Context/ContextServiceProvider.php (11.x)
CONTEXT = "illuminate:log:context"
#: where a schedule's job has its due time, in ISO format with an offset
SCHEDULED_FOR = "scheduledFor"
#: created once: json.dumps would create one for every payload
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=as_json)
#: where a payload has the time of its push, as Horizon writes it: Unix seconds with a fraction, as text
PUSHED_AT = "pushedAt"
_TIMES = ("createdAt", PUSHED_AT, "delay", SCHEDULED_FOR)
_KNOWN = frozenset(
    (*KEYS, *_TIMES, "uuid", "id", "data", "attempts", CONTEXT, UNIQUE_FOR, "qp", EXPIRES, RETRIED, FLOW, ARGS)
)
#: the keys that hooks may not set: Laravel's and ours. ``queue`` is part of what is signed
RESERVED = _KNOWN | {"deleteWhenMissingModels", "queue"}
#: the options that a payload has by default, in Laravel's order
_UNSET: Mapping[str, object] = MappingProxyType(
    dict.fromkeys(("maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil"))
    | {"failOnTimeout": False}
)
_COUNT = re.compile(rb"\d++(?=\s*+[,}])")


class Payload(NamedTuple):
    """One reserved job."""

    id: str
    uuid: str
    data: Any
    attempts: int
    options: PayloadOptions
    #: whether the payload has an id; else ``id`` is a digest
    identified: bool = True
    #: warnings: what was not understood and is ignored
    warnings: tuple[str, ...] = ()
    #: as received: when it was pushed, in whole Unix seconds, and how many seconds later it was due
    created_at: object = None
    delay: object = None
    #: as received: Laravel's context (see ``payload.context``)
    context: object = None
    #: all fields of the payload
    fields: Mapping[str, Any] = MappingProxyType({})

    def waited(self, begun: float) -> float | None:
        """Seconds from when the job was due until ``begun`` (Unix seconds); whole if the payload's times are.

        ``None`` on a later attempt, or if the payload's times are not numbers.
        """
        due = due_at(self.created_at, self.delay, self.fields.get(PUSHED_AT)) if self.attempts <= 1 else None
        if due is None:
            return None
        return max(0, round(begun - due, 3) if isinstance(due, float) else int(begun - due))

    @property
    def pushed_at(self) -> float | None:
        """When it was pushed, in Unix seconds, as exactly as the payload has it; ``None`` if it does not have it."""
        created, pushed = self.created_at, self.fields.get(PUSHED_AT)
        if not is_time(created):
            return None
        return created if pushed is None else precise(pushed, created)

    @property
    def name(self) -> str:
        """The name that a handler is registered under."""
        options = self.options
        if options.job in OBJECT_JOBS and isinstance(self.data, dict):
            name = str(self.data.get("commandName") or options.display_name)
            return options.display_name if name in WRAPPERS else name
        return options.job

    def tracked_for(self, seconds: float) -> Payload:
        """The payload with its job tracked for ``seconds``, unless the payload sets that itself."""
        if self.options.track is not None or not seconds > 0:
            return self
        return self._replace(options=replace(self.options, track=seconds))

    @property
    def tags(self) -> tuple[str, ...]:
        """At most 32, each cut to 128 characters."""
        return tags_in(self.fields)

    @property
    def extra(self) -> dict[str, Any]:
        """The fields other than Laravel's standard ones and ours."""
        return {key: value for key, value in self.fields.items() if key not in _KNOWN}


def decode(raw: bytes, attempts: int | None = None) -> Payload:
    """Decode a payload; ``attempts`` is given if the store counts them rather than the payload.

    Raises ``BadPayload`` for bytes that cannot be a job: not a single JSON object in UTF-8, a duplicate key, nesting
    deeper than 999, NaN or infinity, an unprintable id or name, a count out of range.
    """
    return payload_of(strict_json.read_object(raw), raw, attempts)


def payload_of(fields: Mapping[str, Any], raw: bytes, attempts: int | None = None) -> Payload:
    """The payload with these decoded fields; ``raw`` is hashed to name a job without an id. Raises ``BadPayload``."""
    get, options = fields.get, payload_options_of(fields, len(raw))
    raw_uuid, raw_id = get("uuid"), get("id")
    uuid = raw_uuid if is_word(raw_uuid) else ""
    own = raw_uuid if raw_id is None else raw_id
    return Payload(
        uuid if uuid and own == uuid else identity_of(own, raw),
        uuid,
        get("data"),
        int(get("attempts") or 0) if attempts is None else attempts,
        options,
        own is not None,
        options.warnings if uuid or not raw_uuid else (*options.warnings, "uuid is not 1 to 128 printable characters"),
        get("createdAt"),
        get("delay"),
        get(CONTEXT),
        fields,
    )


class Envelope(NamedTuple):
    """What payloads that are pushed together share: all but their names and data."""

    #: Unix seconds
    created_at: float
    #: seconds
    delay: float = 0
    #: ``maxTries``, ``maxExceptions``, ``failOnTimeout``, ``backoff``, ``timeout`` and ``retryUntil``, where the worker
    #: decides what is missing; ``tags``, a list of texts; ``EXPIRES``, seconds after it is due within which it must
    #: begin
    options: Mapping[str, object] = MappingProxyType({})
    #: ``None`` = the job's name
    display_name: str | None = None
    #: further fields, such as Laravel's context
    extra: Mapping[str, object] = MappingProxyType({})
    #: returns the fields of ``@on_push``
    stamp: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None
    #: returns the encrypted data
    encrypt: Callable[[object], object] | None = None
    #: returns the signature of the fields that must not change on the way: all but ``delay`` and ``attempts``
    sign: Callable[[dict[str, object]], object] | None = None
    #: most bytes
    limit: int = MAX_BYTES


def encode(name: str, data: object, envelope: Envelope, identity: str = "", uuid: str = "") -> tuple[str, bytes]:
    """The id and bytes of a new payload, with Laravel's fields in Laravel's order and ``attempts`` last.

    The id (``identity``) is random if it is not given, and the ``uuid`` is the id.
    Raises ``BadPayload`` for a bad name or too many bytes, ``NotSendable`` for data that JSON cannot hold.
    Source: Queue.php, createPayloadArray (13.x).
    """
    display_name, delay, given = envelope.display_name, envelope.delay, envelope.options
    check_name(name)
    check_name(name if display_name is None else display_name)
    identity = identity or str(uuids.UUID(bytes=os.urandom(16), version=4))
    fields: dict[str, object] = {
        "uuid": uuid or identity,
        "displayName": display_name or name.split("@", 1)[0],
        "job": name,
        **{key: given.get(key, unset) for key, unset in _UNSET.items()},
        "data": data,
        **_pushed(identity, envelope.created_at, delay, given),
        **envelope.extra,
    }
    if envelope.stamp:
        fields.update(envelope.stamp(fields))
    try:
        if envelope.encrypt:
            fields["data"] = envelope.encrypt(data)
        if envelope.sign:
            fields["qp"] = envelope.sign(fields)
        return identity, dump(fields | {"delay": delay or None, "attempts": 0}, envelope.limit)
    except NotSendable as error:
        raise _named(name, data) or error from error.__cause__


def _pushed(identity: str, created_at: float, delay: float, given: Mapping[str, Any]) -> dict[str, object]:
    """The fields of one push, with its tags and expiry if it has them."""
    fields: dict[str, object] = {"createdAt": int(created_at), "id": identity, PUSHED_AT: as_text(created_at)}
    if EXPIRES in given:
        fields[EXPIRES] = round(created_at + delay + given[EXPIRES], 3)
    return fields | {TAGS: given[TAGS]} if TAGS in given else fields


def _named(name: str, data: object) -> NotSendable | None:
    """The error for the first argument that JSON cannot hold; ``None`` if there is none."""
    arguments = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, value in arguments:
        try:
            dump({str(key): value})
        except NotSendable as error:
            return NotSendable(f"argument {key!r} of {name}: {error}")
    return None


def dump(fields: Mapping[str, object], limit: int = MAX_BYTES) -> bytes:
    """Compact JSON in UTF-8. Raises ``NotSendable`` for what JSON cannot hold, ``BadPayload`` above ``limit`` bytes."""
    try:
        raw = _ENCODER.encode(fields).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotSendable(str(error)) from error
    if len(raw) > limit:
        raise BadPayload(f"{len(raw)} bytes, at most {limit} are allowed")
    check_readable(fields, raw)
    return raw


# When a job was pushed, and for how long it has been ready, as far as its payload shows.

#: seconds between ``createdAt``, a whole number, and ``pushedAt`` up to which they mean the same moment
_SAME_MOMENT = 2.0
#: the limit of ``is_time``
_LATEST = 100_000_000_000


def ready_for(payload: bytes | None, now: float) -> float | None:
    """Seconds since the job was due, not below 0; ``now`` in Unix seconds by the store's clock.

    ``None`` if the payload does not show it: on a later attempt, or without ``createdAt`` or ``delay`` (Laravel before
    12.11). A producer whose clock is ahead makes it 0; one whose clock is behind makes it too large.
    """
    try:
        fields = json.loads(payload or b"null")
        created, delay, attempts = fields["createdAt"], fields["delay"], fields.get("attempts") or 0
        pushed = fields.get(PUSHED_AT)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_first = isinstance(attempts, int) and attempts == 0
    due = due_at(created, delay, pushed) if is_first else None
    return None if due is None else max(now - due, 0.0)


@lru_cache(maxsize=1)  # all payloads of a bulk have the same time
def as_text(pushed: float) -> str:
    """Unix seconds as ``PUSHED_AT`` holds them."""
    return f"{pushed:.4f}"


def due_at(created: object, delay: object, pushed: object) -> float | None:
    """When a job was due, in Unix seconds, by its ``createdAt``, ``delay`` and ``pushedAt``.

    ``None`` if one of the first two is not a time.
    """
    # The usual case, checked first: ``is_time`` for both costs more than all the rest.
    if delay is None and pushed.__class__ is str and created.__class__ is int and 0 <= created < _LATEST:
        return precise(pushed, created)
    delay = delay or 0
    if not (is_time(created) and is_time(delay)):
        return None
    return (created if pushed is None else precise(pushed, created)) + delay


def precise(pushed: object, created: float) -> float:
    """``pushed`` (a number or its text) if it means the same moment as ``created``, else ``created``."""
    try:
        at = float(pushed)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return created
    return at if -_SAME_MOMENT <= at - created <= _SAME_MOMENT else created


# How a job is identified: by its id, or a digest of its bytes.

_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_ATTEMPTS = re.compile(rb'"attempts"\s*+:\s*+\d++')


def is_word(value: object) -> TypeGuard[str]:
    """Whether it is 1 to 128 printable characters: people type it, and failed jobs are recorded under it."""
    if not isinstance(value, str):
        return False
    # Most are plain ASCII, which is faster to check.
    return (0 < len(value) <= 128 and value.isascii() and value.isprintable()) or bool(_ID.fullmatch(value))


def identity_of(given: object, raw: bytes) -> str:
    """The given id, else the digest. Raises ``BadPayload``."""
    if given is None:
        return digest_of(raw)
    if not is_word(given):
        raise BadPayload("id")
    return given


def digest_of(raw: bytes) -> str:
    """An id for any bytes, the same for every attempt."""
    return hashlib.sha256(_ATTEMPTS.sub(b"", raw)).hexdigest()[:32]


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
    """The payload of a failed job that is retried by hand; unchanged unless it has an expiry."""
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
