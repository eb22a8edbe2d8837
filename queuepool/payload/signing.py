"""Signed payloads: access to the store is not enough to push jobs.

Laravel's pop decodes a payload in the server and encodes it again: numbers are rounded, ``[]`` becomes ``{}``. Only
strings survive. So the signature covers a string, the JSON of all the fields, and only that string is used:

    "qp": {"kid": NAME OF THE KEY, "body": JSON, "sig": HEX OF HMAC-SHA256(SECRET, kid ":" body)}

It does not cover ``attempts``, which changes with every reservation, an ``id`` that Laravel adds after its hooks,
or the mark of a retry by hand. The signature is verified before the payload is decoded: in an unsigned one, only
strings and brackets are looked at.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from queuepool.errors import BadPayload
from queuepool.payload.envelope import MAX_BYTES, Payload, decode, dump, payload_of
from queuepool.payload.members import FLOW
from queuepool.payload.options import RETRIED
from queuepool.payload.strict_json import read_object, texts_at, values_of

#: fields that are repeated outside the signed text, for readers that do not verify it: both must agree
_TWICE = ("id", "uuid", "job", "displayName", FLOW)


class Signer:
    """Signs and verifies with the keys of one connection. ``required``: unsigned payloads are refused."""

    def __init__(self, keys: tuple[tuple[str, str], ...], *, required: bool) -> None:
        self._keys = {kid: secret.encode() for kid, secret in keys}
        self._first = keys[0][0]
        self._required = required

    def sign(self, queue: str, fields: Mapping[str, object], limit: int = MAX_BYTES) -> dict[str, str]:
        """Sign: the value of ``qp`` for a payload with these fields on this queue. Raises ``BadPayload``."""
        body = dump({"queue": queue, **fields}, limit).decode()
        return {"kid": self._first, "body": body, "sig": self._signature(self._first, body)}

    def seal(self, purpose: str, text: str) -> dict[str, str]:
        """Sign a text that is not a payload; the signature is valid for this purpose only."""
        return {"kid": self._first, "body": text, "sig": self._signature(self._first, f"{purpose}:{text}")}

    def opened(self, purpose: str, sealed: Mapping[str, object]) -> str:
        """The text that ``seal`` has signed for this purpose. Raises ``BadPayload`` for any other."""
        match sealed:
            case {"kid": str(kid), "body": str(body), "sig": str(signature)}:
                pass
            case _:
                raise BadPayload("unsigned")
        self._check(kid, f"{purpose}:{body}", signature)
        return body

    def verify(self, raw: bytes, queue: str, attempts: int | None = None) -> Payload:
        """Verify, then decode as ``envelope.decode``. Raises ``BadPayload``, also for a wrong signature or queue."""
        if len(raw) > MAX_BYTES:
            raise BadPayload("too-large")
        signed = _signed_in(raw)
        if signed is not None:
            body = self._body(signed)
            outside = read_object(raw)
            # Check these too: the steward, which settles dead workers' jobs, reads only them.
            payload_of(outside, raw, attempts)
            return payload_of(_agreed(outside, read_object(body.encode()), queue), raw, attempts)
        if self._required:
            raise BadPayload("unsigned")
        plain = decode(raw, attempts)
        if "qp" in plain.fields:  # the key "qp" is written with escapes, which neither we nor PHP do
            raise BadPayload("malformed-signature")
        return plain

    def moved(self, raw: bytes, queue: str, target: str, there: Signer | None = None) -> bytes:
        """The payload as it can run from another queue: signed for that one, if it was signed for this one.

        ``there``: the signer of that queue's connection, if it is another one.

        Unchanged if it has no signature, or a wrong one: it must be trusted no more there than here.
        """
        try:
            signed = _signed_in(raw)
            if signed is None:
                return raw
            fields = read_object(self._body(signed).encode())
            if fields.pop("queue", None) != queue:
                return raw
            return dump({**read_object(raw), "qp": (there or self).sign(target, fields)})
        except BadPayload:
            return raw

    def _body(self, signed: object) -> str:
        """The signed text. Raises ``BadPayload`` if it was not signed with one of the keys."""
        match signed:
            case {"kid": str(kid), "body": str(body), "sig": str(signature)}:
                pass
            case _:
                raise BadPayload("malformed-signature")
        self._check(kid, body, signature)
        return body

    def _check(self, kid: str, text: str, signature: str) -> None:
        """Raise ``BadPayload`` if the text was not signed with this key of ours."""
        if kid not in self._keys:
            raise BadPayload("unknown-signing-key")
        if not hmac.compare_digest(self._signature(kid, text).encode(), signature.encode()):
            raise BadPayload("wrong-signature")

    def _signature(self, kid: str, body: str) -> str:
        # A name has no colon, so this is unambiguous.
        return hmac.new(self._keys[kid], f"{kid}:{body}".encode(), hashlib.sha256).hexdigest()


def _signed_in(raw: bytes) -> object:
    """The value of ``qp``, read alone; ``None`` if there is none. Raises ``BadPayload``."""
    start = next(values_of(raw, b'"qp"'), None)
    if start is None:
        return None
    texts = texts_at(raw, start)
    return read_object(texts) if texts else ""


def _agreed(outside: Mapping[str, Any], fields: dict[str, Any], queue: str) -> dict[str, Any]:
    """The signed fields, with those that a signature cannot cover. Raises ``BadPayload``."""
    if fields.pop("queue", None) != queue:
        raise BadPayload("signed-for-another-queue")
    # A flow also if none was signed: the steward would end a member of it.
    if any(outside.get(name) != fields.get(name) for name in _TWICE if name in fields or name == FLOW):
        raise BadPayload("not-what-was-signed")
    marks = {RETRIED: True} if outside.get(RETRIED) else {}
    return {"id": outside.get("id"), **fields, **marks, "attempts": outside.get("attempts")}


def signer_of(signing: str, keys: tuple[tuple[str, str], ...]) -> Signer | None:
    """The signer for these settings; ``None`` for ``signing = off``: no signatures are made or checked."""
    return None if signing == "off" else Signer(keys, required=signing == "require")
