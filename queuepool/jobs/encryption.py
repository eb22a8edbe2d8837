"""The producer's side of encrypted jobs. The library that encrypts is loaded with the first of them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import ConfigError

if TYPE_CHECKING:
    from queuepool.payload.encrypter import Encrypter


class Encryption:
    """That of one connection. Its methods raise ``ConfigError`` without a key."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings

    def command(self, text: str) -> str:
        """A serialized PHP object, as Laravel encrypts it."""
        return self._encrypter.encrypt(text)

    def data(self, data: object) -> dict[str, str]:
        """A job's data, for queuepool's workers."""
        from queuepool.payload.encrypter import encrypted

        return encrypted(data, self._encrypter)

    @cached_property
    def _encrypter(self) -> Encrypter:
        from queuepool.payload.encrypter import encrypter_of

        if encrypter := encrypter_of(self._settings.cipher, self._settings.app_keys):
            return encrypter
        raise ConfigError(f"connection {self._settings.name}", "encrypted jobs need app_key")
