"""A message of Django's as JSON, and back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from email import message_from_bytes, policy
from email.message import MIMEPart
from email.mime.base import MIMEBase
from typing import Any

from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.utils.functional import Promise

#: what the constructors take; anything else that is set on a message, as backends of services have it, goes along
_GIVEN = ("subject", "body", "from_email", "to", "cc", "bcc", "reply_to")
_OF_ITS_OWN = {*_GIVEN, "extra_headers", "attachments", "alternatives", "connection"}


def written(message: Any) -> dict[str, object]:
    """The message for a payload.

    Raises what ``message()`` raises, so that a wrong header is found where it is written, and ``TypeError`` for a class
    that makes its own MIME message.
    """
    if not isinstance(message, EmailMessage) or type(message).message is not EmailMessage.message:
        kind = type(message).__qualname__
        raise TypeError(f"a {kind} makes its own MIME message, which a payload cannot hold: send it by another backend")
    message.message()
    about: dict[str, object] = {key: getattr(message, key) for key in _GIVEN}
    about["headers"] = message.extra_headers
    about["attachments"] = [_attachment(one) for one in message.attachments]
    if isinstance(message, EmailMultiAlternatives):
        about["alternatives"] = [list(one) for one in message.alternatives]
    about["more"] = {key: value for key, value in vars(message).items() if key not in _OF_ITS_OWN}
    return {key: _plain(value) for key, value in about.items()}


def read(about: Mapping[str, Any]) -> Any:
    """The message of this payload."""
    given: dict[str, Any] = {key: about[key] for key in (*_GIVEN, "headers")}
    given["attachments"] = [_read(one) for one in about["attachments"]]
    message = EmailMultiAlternatives(**given) if "alternatives" in about else EmailMessage(**given)
    for content, kind in about.get("alternatives", ()):
        message.attach_alternative(content, kind)
    for key, value in about["more"].items():
        setattr(message, key, value)
    return message


def _attachment(one: Any) -> dict[str, object]:
    if isinstance(one, (MIMEBase, MIMEPart)):
        return {"mime" if isinstance(one, MIMEBase) else "part": _text(one.as_bytes())}
    name, content, kind = one
    about = {"name": name, "type": kind}
    return {**about, "bytes": _text(content)} if isinstance(content, (bytes, bytearray)) else {**about, "text": content}


def _read(about: Mapping[str, Any]) -> Any:
    if "mime" in about:
        return message_from_bytes(b64decode(about["mime"]), _class=_bare)
    if "part" in about:
        kind: Any = MIMEPart
        return message_from_bytes(b64decode(about["part"]), _class=kind, policy=policy.default)
    return about["name"], b64decode(about["bytes"]) if "bytes" in about else about["text"], about["type"]


def _bare(policy: Any = policy.compat32) -> Any:
    """A part without a header, for a parser to fill in: Django takes no other class than this."""
    part = MIMEBase("text", "plain", policy=policy)
    for name in part.keys():  # noqa: SIM118 - a part is not a dict
        del part[name]
    return part


def _text(content: bytes | bytearray) -> str:
    return b64encode(content).decode()


def _plain(value: object) -> object:
    """The text with its lazy translations resolved, in the language of the code that dispatches the message."""
    if isinstance(value, Promise):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
