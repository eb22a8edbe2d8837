"""The data of a job that a Laravel worker runs as an object."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from queuepool.config import values
from queuepool.jobs.encryption import Encryption
from queuepool.payload.php_serialize import build_command


def data_of(
    class_name: str,
    properties: Mapping[str, Any],
    protected: Collection[str],
    private: Collection[str],
    encryption: Encryption | None,
) -> dict[str, object]:
    """As Laravel writes it, encrypted if asked. Raises ``PhpDataRefused``, and for other types
    ``ValueError`` and ``TypeError``."""
    if not isinstance(class_name, str):
        raise ValueError(f"{class_name!r} is not the full name of a PHP class like App\\Jobs\\Sync")
    if not isinstance(properties, Mapping):
        raise TypeError(f"{class_name}: its properties are a dict, not {type(properties).__name__}")
    command = build_command(values.php_class(class_name), properties, protected, private)
    return {"commandName": class_name, "command": encryption.command(command) if encryption else command}
