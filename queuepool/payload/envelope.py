"""A job's envelope: Laravel's JSON, decoded strictly and encoded as Laravel encodes it."""

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
from queuepool.payload.strict_json import check_readable
from queuepool.payload.to_json import as_json
from queuepool.payload.wrappers import WRAPPERS

#: The class that every object job of Laravel goes through; its own name is in ``data.commandName``.
OBJECT_JOB = "Illuminate\\Queue\\CallQueuedHandler@call"
#: where the payload holds Laravel's context. Source: Log/Context/ContextServiceProvider.php (11.x)
CONTEXT = "illuminate:log:context"
#: where a schedule's job holds the time that it is for, as an ISO text with its offset
SCHEDULED_FOR = "scheduledFor"
#: created once: json.dumps would create one for every payload
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=as_json)
# When a job was pushed, and for how long it has been ready, as far as its payload says it.

#: where a payload has the time of its push as the text of Unix seconds with a fraction, as Horizon writes it
PUSHED_AT = "pushedAt"
_TIMES = ("createdAt", PUSHED_AT, "delay", SCHEDULED_FOR)
_KNOWN = frozenset((*KEYS, *_TIMES, "uuid", "id", "data", "attempts", CONTEXT, UNIQUE_FOR, "qp", EXPIRES, RETRIED))
#: the keys that a payload may have by itself: nothing else may set them. ``queue`` is in what is signed
RESERVED = _KNOWN | {"deleteWhenMissingModels", "queue"}
#: the options of a payload that says nothing of them, in Laravel's order
_UNSET: Mapping[str, object] = MappingProxyType(
    dict.fromkeys(("maxTries", "maxExceptions", "failOnTimeout", "backoff", "timeout", "retryUntil"))
    | {"failOnTimeout": False}
)


class Payload(NamedTuple):
    """One reserved job."""

    id: str
    uuid: str
    data: Any
    attempts: int
    options: PayloadOptions
    #: whether the payload has an id of its own
    identified: bool = True
    #: warnings: what was not understood and is ignored
    warnings: tuple[str, ...] = ()
    #: as received: when it was pushed, in whole Unix seconds, and how many seconds later it was due
    created_at: object = None
    delay: object = None
    #: as received: Laravel's context, whose values are serialized one by one (``payload.context``)
    context: object = None
    #: all that the payload holds
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
        """When it was pushed, in Unix seconds, as exactly as the payload says it; ``None`` if it does not."""
        created, pushed = self.created_at, self.fields.get(PUSHED_AT)
        if not is_time(created):
            return None
        return created if pushed is None else precise(pushed, created)

    @property
    def name(self) -> str:
        """The name that a handler is registered under."""
        options = self.options
        if options.job == OBJECT_JOB and isinstance(self.data, dict):
            name = str(self.data.get("commandName") or options.display_name)
            return options.display_name if name in WRAPPERS else name
        return options.job

    def tracked_for(self, seconds: float) -> Payload:
        """The payload as if it said itself that its job is tracked for ``seconds``, unless it says for how long."""
        if self.options.track is not None or not seconds > 0:
            return self
        return self._replace(options=replace(self.options, track=seconds))

    @property
    def tags(self) -> tuple[str, ...]:
        """At most 32, each cut to 128 characters."""
        return tags_in(self.fields)

    @property
    def extra(self) -> dict[str, Any]:
        """The fields that are not Laravel's own for every job, nor ours."""
        return {key: value for key, value in self.fields.items() if key not in _KNOWN}


def decode(raw: bytes, attempts: int | None = None) -> Payload:
    """Decode a payload; ``attempts`` is given where the store counts them, not the payload.

    Raises ``BadPayload`` for bytes that cannot be a job: not one JSON object in UTF-8, ambiguous (a duplicate key),
    nested deeper than 999, NaN or infinity, an id or name that cannot be printed, a count that is out of range.
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
    """What new payloads have besides a name and data: the same for all that are pushed at once."""

    #: Unix seconds
    created_at: float
    #: seconds
    delay: float = 0
    #: ``maxTries``, ``maxExceptions``, ``failOnTimeout``, ``backoff``, ``timeout`` and ``retryUntil``, of which the
    #: worker decides the missing ones; ``tags``, a list of texts; ``EXPIRES``, the seconds from when it is due within
    #: which it must begin
    options: Mapping[str, object] = MappingProxyType({})
    #: ``None`` = the job's name
    display_name: str | None = None
    #: further fields, as Laravel's context
    extra: Mapping[str, object] = MappingProxyType({})
    #: gives the fields of ``@on_push``
    stamp: Callable[[Mapping[str, object]], Mapping[str, object]] | None = None
    #: gives the encrypted data
    encrypt: Callable[[object], object] | None = None
    #: gives the signature of the fields that must not change on the way: all but ``delay`` and ``attempts``
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
    """The fields of one push, and the tags and the end if there are any."""
    fields: dict[str, object] = {"createdAt": int(created_at), "id": identity, PUSHED_AT: as_text(created_at)}
    if EXPIRES in given:
        fields[EXPIRES] = round(created_at + delay + given[EXPIRES], 3)
    return fields | {TAGS: given[TAGS]} if TAGS in given else fields


def _named(name: str, data: object) -> NotSendable | None:
    """The error for the first argument that cannot be written as JSON; ``None`` if each can."""
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


#: seconds from ``createdAt``, which is whole, within which ``pushedAt`` is the same moment
_SAME = 2.0
#: as ``is_time`` has it
_LATEST = 100_000_000_000


def ready_for(payload: bytes | None, now: float) -> float | None:
    """Seconds since the job was due, not below 0; ``now`` in Unix seconds by the store's clock.

    ``None`` if the payload does not say it: on a later attempt, and if it has no ``createdAt`` or no ``delay`` (Laravel
    before 12.11). A producer whose clock is ahead gives 0, one that is behind as much too much.
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


@lru_cache(maxsize=1)  # the payloads of a bulk have one time
def as_text(pushed: float) -> str:
    """Unix seconds as ``PUSHED_AT`` holds them."""
    return f"{pushed:.4f}"


def due_at(created: object, delay: object, pushed: object) -> float | None:
    """When a job was due, in Unix seconds, by its ``createdAt``, ``delay`` and ``pushedAt``.

    ``None`` if one of the first two is no time.
    """
    # Nearly all are such; ``is_time`` for both costs more than all the rest.
    if delay is None and pushed.__class__ is str and created.__class__ is int and 0 <= created < _LATEST:
        return precise(pushed, created)
    delay = delay or 0
    if not (is_time(created) and is_time(delay)):
        return None
    return (created if pushed is None else precise(pushed, created)) + delay


def precise(pushed: object, created: float) -> float:
    """``pushed`` (a number or its text) if it is the same moment as ``created``, else that."""
    try:
        at = float(pushed)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return created
    return at if -_SAME <= at - created <= _SAME else created


# What a job is known by: its id, or a digest of its bytes.

_ID = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_ATTEMPTS = re.compile(rb'"attempts"\s*+:\s*+\d++')


def is_word(value: object) -> TypeGuard[str]:
    """Whether it is 1 to 128 printable characters: people type it, and failed jobs are recorded under it."""
    if not isinstance(value, str):
        return False
    # Nearly all are plain ASCII, which is faster to check.
    return (0 < len(value) <= 128 and value.isascii() and value.isprintable()) or bool(_ID.fullmatch(value))


def identity_of(given: object, raw: bytes) -> str:
    """The given id, else the digest. Raises ``BadPayload``."""
    if given is None:
        return digest_of(raw)
    if not is_word(given):
        raise BadPayload("id")
    return given


def digest_of(raw: bytes) -> str:
    """A name for these bytes, whatever they are, that is the same for every attempt."""
    return hashlib.sha256(_ATTEMPTS.sub(b"", raw)).hexdigest()[:32]
