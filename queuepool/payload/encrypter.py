"""Laravel's encryption of a text with the application's key.

    base64(JSON {"iv": base64, "value": base64, "mac": hex or "", "tag": base64 or ""})

CBC has a MAC over ``iv`` and ``value`` as they are written here, GCM a tag. The plaintext is the text as PHP
serializes it. Source: Encryption/Encrypter.php (8.83 to 13.x).

The data of queuepool's own jobs is encrypted as ``{"qp_encrypted": TEXT}``. ``TEXT`` is the JSON ``{"data": DATA}``,
encrypted as Laravel encrypts its object jobs. PHP workers cannot read it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

from queuepool.errors import BadArguments, BadPayload, QueuepoolError
from queuepool.payload.envelope import dump
from queuepool.payload.php_unserialize import PhpDataRefused, parse
from queuepool.payload.php_values import serialize
from queuepool.payload.strict_json import read_object

#: the only key of queuepool's encrypted data
MARK = "qp_encrypted"
NO_KEY = "it is encrypted, and there is no key: set app_key"


class CannotDecrypt(QueuepoolError):
    """No key fits, or the text was changed on the way."""


class Encrypter:
    """``cipher`` is Laravel's ``app.cipher``; the first key encrypts, each may decrypt."""

    def __init__(self, cipher: str, keys: Sequence[bytes]) -> None:
        from queuepool.payload import aes  # imported here: it is slow, and few applications encrypt their jobs

        mode = aes.Gcm if cipher.endswith("GCM") else aes.Cbc
        self._ciphers = [mode(key) for key in keys]

    def encrypt(self, text: str) -> str:
        """Encrypt with the first key. Raises ``PhpDataRefused`` for text that UTF-8 cannot hold."""
        fields = self._ciphers[0].encrypt(serialize(text).encode())
        return b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()

    def decrypt(self, text: str) -> str:
        """The text. Raises ``CannotDecrypt``, and ``PhpDataRefused`` if it decrypts to anything but a PHP string."""
        plain = parse(self._decrypted(text).decode("utf-8", "surrogateescape"))
        if not isinstance(plain, str):
            raise CannotDecrypt("the decrypted value is not text")
        return plain

    def _decrypted(self, text: str) -> bytes:
        try:
            fields = read_object(b64decode(text, validate=True))
            found = (cipher.decrypt(fields) for cipher in self._ciphers)
            return next(plain for plain in found if plain is not None)
        except (BadPayload, StopIteration, ValueError, KeyError, TypeError, AttributeError):
            # No cause: details about the bytes would help those who forge them.
            raise CannotDecrypt("it cannot be decrypted with these keys") from None


def encrypter_of(cipher: str, keys: Sequence[bytes]) -> Encrypter | None:
    """The encrypter with these keys; ``None`` if there are none."""
    return Encrypter(cipher, keys) if keys else None


def encrypted(data: object, encrypter: Encrypter) -> dict[str, str]:
    """The data, encrypted. Raises as ``envelope.dump`` does."""
    return {MARK: encrypter.encrypt(dump({"data": data}).decode())}


def decrypted(name: str, data: dict[str, Any], encrypter: Encrypter | None) -> Any:
    """The decrypted data of the job with this ``name``. Raises ``BadArguments``."""
    try:
        if encrypter is None:
            raise CannotDecrypt(NO_KEY)
        return read_object(encrypter.decrypt(str(data[MARK])).encode())["data"]
    except (CannotDecrypt, PhpDataRefused, BadPayload, UnicodeError, KeyError) as error:
        raise BadArguments(name, error) from error
