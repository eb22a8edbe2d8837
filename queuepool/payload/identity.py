"""What a job is known by: its id, or a digest of its bytes."""

from __future__ import annotations

import hashlib
import re
from typing import TypeGuard

from queuepool.errors import BadPayload

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
