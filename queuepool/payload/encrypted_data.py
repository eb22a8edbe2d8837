"""The data of a job of queuepool's own, encrypted: ``{"qp_encrypted": TEXT}``.

``TEXT`` is the JSON ``{"data": DATA}``, encrypted as Laravel encrypts its object jobs. PHP workers do not read it.
"""

from __future__ import annotations

from typing import Any

from queuepool.errors import BadArguments, BadPayload
from queuepool.payload.encrypter import NO_KEY, CannotDecrypt, Encrypter
from queuepool.payload.envelope import dump
from queuepool.payload.php_unserialize import PhpDataRefused
from queuepool.payload.strict_json import read_object

#: the only key of such data
MARK = "qp_encrypted"


def encrypted(data: object, encrypter: Encrypter) -> dict[str, str]:
    """The data, encrypted. Raises as ``envelope.dump`` does."""
    return {MARK: encrypter.encrypt(dump({"data": data}).decode())}


def decrypted(name: str, data: dict[str, Any], encrypter: Encrypter | None) -> Any:
    """The data that was encrypted, for the job of this ``name``. Raises ``BadArguments``."""
    try:
        if encrypter is None:
            raise CannotDecrypt(NO_KEY)
        return read_object(encrypter.decrypt(str(data[MARK])).encode())["data"]
    except (CannotDecrypt, PhpDataRefused, BadPayload, UnicodeError, KeyError) as error:
        raise BadArguments(name, error) from error
