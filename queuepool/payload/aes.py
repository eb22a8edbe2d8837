"""The two AES modes that Laravel encrypts with, each with one key. Needs the extra ``encrypted``.

``encrypt`` returns the fields of Laravel's JSON. ``decrypt`` returns the plaintext, or ``None`` if it was not encrypted
with this key; it raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError`` for malformed fields.
Source: Encryption/Encrypter.php (8.83 to 13.x).
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7


class Cbc:
    """AES-CBC with PKCS #7 padding."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._aes = AES(key)

    def encrypt(self, plain: bytes) -> dict[str, str]:
        padder, iv = PKCS7(128).padder(), os.urandom(16)
        encryptor = self._mode(iv).encryptor()
        value = encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize()
        written = {"iv": _base64(iv), "value": _base64(value)}
        return {**written, "mac": self._mac(written["iv"] + written["value"]), "tag": ""}

    def decrypt(self, fields: Mapping[str, Any]) -> bytes | None:
        if not hmac.compare_digest(self._mac(fields["iv"] + fields["value"]), fields["mac"]):
            return None
        decryptor, unpadder = self._mode(b64decode(fields["iv"])).decryptor(), PKCS7(128).unpadder()
        padded = decryptor.update(b64decode(fields["value"])) + decryptor.finalize()
        return unpadder.update(padded) + unpadder.finalize()

    def _mode(self, iv: bytes) -> Any:
        return Cipher(self._aes, CBC(iv))

    def _mac(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


class Gcm:
    """AES-GCM without additional data; its 16-byte tag is beside the value."""

    def __init__(self, key: bytes) -> None:
        self._aes = AESGCM(key)

    def encrypt(self, plain: bytes) -> dict[str, str]:
        iv = os.urandom(12)
        sealed = self._aes.encrypt(iv, plain, None)
        return {"iv": _base64(iv), "value": _base64(sealed[:-16]), "mac": "", "tag": _base64(sealed[-16:])}

    def decrypt(self, fields: Mapping[str, Any]) -> bytes | None:
        iv, value, tag = (b64decode(fields[name], validate=True) for name in ("iv", "value", "tag"))
        if (len(iv), len(tag)) != (12, 16):
            return None
        try:
            return self._aes.decrypt(iv, value + tag, None)
        except InvalidTag:
            return None


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
