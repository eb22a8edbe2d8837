"""PHP's values in Python, as inert data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from queuepool.errors import QueuepoolError

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 100_000

PhpValue: TypeAlias = (
    "bool | int | float | str | list[PhpValue] | dict[int | str, PhpValue] | PhpObject | PhpEnum | None"
)


@dataclass(frozen=True, slots=True)
class PhpObject:
    """An object's class name and its properties: public, protected and private alike."""

    class_name: str
    properties: Mapping[str, PhpValue]


@dataclass(frozen=True, slots=True)
class PhpEnum:
    """A case of a PHP enum; the serialization does not hold a backed enum's value."""

    class_name: str
    case: str


class PhpDataRefused(QueuepoolError, ValueError):
    """Not PHP data, data above the limits, or a value that PHP cannot hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"PHP data refused: {reason}")
        self.reason = reason
