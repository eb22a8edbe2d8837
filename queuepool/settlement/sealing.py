"""What is kept of the steps of an encrypted job is encrypted, with the key of the job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from queuepool.config.settings import ConnectionSettings
from queuepool.errors import BadArguments
from queuepool.payload.encrypter import NO_KEY, decrypted, encrypted, encrypter_of
from queuepool.payload.envelope import Payload, dump
from queuepool.payload.lease import Lease
from queuepool.settlement.states import is_secret


class Sealer:
    """Encrypts and decrypts kept values, by the keys of a connection; those of other jobs stay as they are."""

    def __init__(self, connection: ConnectionSettings) -> None:
        self._connection = connection

    def sealed(self, payload: Payload, raw: bytes) -> bytes:
        """The JSON as it is kept. Raises ``BadArguments`` without a key."""
        if not is_secret(payload):
            return raw
        encrypter = encrypter_of(self._connection.cipher, self._connection.app_keys)
        if encrypter is None:
            raise BadArguments(payload.name, NO_KEY)
        return dump(encrypted(raw.decode(), encrypter))

    def opened(self, payload: Payload, raw: bytes) -> bytes:
        """The JSON that was kept. Raises ``BadArguments`` if it cannot be decrypted."""
        if not is_secret(payload):
            return raw
        encrypter = encrypter_of(self._connection.cipher, self._connection.app_keys)
        return str(decrypted(payload.name, json.loads(raw), encrypter)).encode()

    def ended(self, lease: Lease, payload: Payload, *, forget: bool = False, delay: float = 0.0) -> Lease:
        """The lease, as the verb that ends it wants what its steps say.

        ``forget``: the job is done. ``delay``: seconds until its next attempt.
        """
        assert lease.steps
        places = () if forget else self._sealed(lease.steps.places, payload)
        return lease._replace(steps=lease.steps._replace(forget=forget, places=places, delay=delay))

    def _sealed(self, places: Sequence[tuple[str, bytes]], payload: Payload) -> tuple[tuple[str, bytes], ...]:
        try:
            return tuple((name, self.sealed(payload, place)) for name, place in places)
        except BadArguments:  # of a steward that has no key: rows may be done again
            return ()
