"""What jobs note in a file while somebody reads it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any


def whole(record: struct.Struct, raw: bytes) -> Iterator[tuple[Any, ...]]:
    """All but the last one, if it is being written this moment."""
    return record.iter_unpack(raw[: len(raw) // record.size * record.size])
