"""The reader of object jobs that a connection's settings ask for: workers and the steward read them with its keys."""

from __future__ import annotations

from queuepool.config.settings import ConnectionSettings
from queuepool.payload.command import Commands
from queuepool.payload.encrypter import encrypter_of


def commands_of(connection: ConnectionSettings) -> Commands:
    """A reader that decrypts with the connection's keys, if it has any."""
    return Commands(encrypter_of(connection.cipher, connection.app_keys))
