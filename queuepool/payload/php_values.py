"""PHP's values in Python, as inert data, and ``serialize()``: a job pushed from Python runs as an object in PHP."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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


def build_command(
    class_name: str,
    properties: Mapping[str, PhpValue],
    protected: Collection[str] = (),
    private: Collection[str] = (),
) -> str:
    """The PHP serialization of an object; its properties are public, except those in ``protected`` or ``private``.

    Raises ``PhpDataRefused``.
    """
    named = {**dict.fromkeys(protected, "\0*\0"), **dict.fromkeys(private, f"\0{class_name}\0")}
    for name in named.keys() - properties.keys():
        raise PhpDataRefused(f"there is no property {name!r}")
    return serialize(PhpObject(class_name, {named.get(name, "") + name: value for name, value in properties.items()}))


def serialize(value: PhpValue) -> str:
    """The PHP serialization of a value. Raises ``PhpDataRefused``."""
    return _written(value, 1)


def _written(value: PhpValue, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise PhpDataRefused(f"nested deeper than {MAX_DEPTH}")
    match value:
        case list():
            return f"a:{_written_pairs(enumerate(value), depth)}"
        case dict():
            return f"a:{_written_pairs(value.items(), depth)}"
        case PhpObject():
            return f"O:{_sized(value.class_name)}:{_written_pairs(value.properties.items(), depth)}"
        case PhpEnum():
            return f"E:{_sized(f'{value.class_name}:{value.case}')};"
        case _:
            return _written_scalar(value)


def _written_scalar(value: object) -> str:
    match value:
        case None:
            return "N;"
        case bool():
            return f"b:{value:d};"
        case int() if -(2**63) <= value < 2**63:
            return f"i:{value:d};"
        case float():
            return f"d:{repr(value).upper()};"
        case str():
            return f"s:{_sized(value)};"
    raise PhpDataRefused(f"PHP cannot hold this {type(value).__name__}")


def _written_pairs(pairs: Iterable[tuple[int | str, PhpValue]], depth: int) -> str:
    written = [_written_scalar(key) + _written(value, depth + 1) for key, value in pairs]
    return f"{len(written)}:{{{''.join(written)}}}"


def _sized(text: str) -> str:
    try:
        return f'{len(text.encode())}:"{text}"'
    except UnicodeEncodeError:
        raise PhpDataRefused("text that UTF-8 cannot hold") from None
