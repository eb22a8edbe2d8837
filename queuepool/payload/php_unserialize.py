"""PHP's serialized data as inert Python data: nothing is executed, nothing is instantiated."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
    """A case of a PHP enum; a backed enum's value is not in the data."""

    class_name: str
    case: str


class PhpDataRefused(QueuepoolError, ValueError):
    """Not PHP data, data above the limits, or a value that PHP cannot hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"PHP data refused: {reason}")
        self.reason = reason


def parse(text: str) -> PhpValue:
    """The one value in ``text``; PHP arrays with the keys 0 to n-1 are lists, all others dicts.

    Bytes that are not UTF-8 become surrogates (``surrogateescape``). Raises ``PhpDataRefused``.
    """
    return _Reader(_bytes_of(text)).read()


def parse_object(text: str) -> PhpObject:
    """The object in ``text``, read as by ``parse``. Raises ``PhpDataRefused``."""
    value = parse(text)
    if not isinstance(value, PhpObject):
        raise PhpDataRefused("not an object")
    return value


# Every repetition is bounded: megabytes of digits must reach neither backtracking nor int().
_TOKEN = re.compile(
    rb"""(?P<null>N);|b:(?P<bool>[01]);|i:(?P<int>-?[0-9]{1,19});
    |d:(?P<float>-?[0-9]{0,20}\.?[0-9]{1,20}(?:[eE][+-]?[0-9]{1,3})?|-?INF|NAN);
    |s:(?P<string>[0-9]{1,9}):"|a:(?P<array>[0-9]{1,9}):{|O:(?P<object>[0-9]{1,9}):"|E:(?P<enum>[0-9]{1,9}):"
    """,
    re.VERBOSE,
)
_PROPERTY_COUNT = re.compile(rb"([0-9]{1,9}):{")
_UNSUPPORTED = {b"R:": "a reference", b"r:": "a reference", b"C:": "a custom serializer"}
_SCALARS: dict[str, Callable[[bytes], bool | int | float | None]] = {
    "null": lambda _: None,
    "bool": lambda text: text == b"1",
    "int": int,
    "float": float,
}


def _bytes_of(text: str) -> bytes:
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise PhpDataRefused("a lone surrogate") from None
    if len(data) > MAX_BYTES:
        raise PhpDataRefused(f"more than {MAX_BYTES} bytes")
    return data


class _Reader:
    """One pass over one serialized text."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._values_left = MAX_VALUES

    def read(self) -> PhpValue:
        value = self._value(1)
        if self._at < len(self._data):
            raise self._refused("trailing bytes")
        return value

    def _value(self, depth: int) -> PhpValue:
        if depth > MAX_DEPTH:
            raise self._refused(f"nested deeper than {MAX_DEPTH}")
        kind, text = self._token()
        if kind in _SCALARS:
            return _SCALARS[kind](text)
        return self._compound(kind, int(text), depth)

    def _compound(self, kind: str, size: int, depth: int) -> PhpValue:
        if kind == "array":
            return _list_or_dict(self._pairs(size, depth))
        if kind == "object":
            return self._object(size, depth)
        string = self._string(size, b'";')
        if kind == "string":
            return string
        class_name, _, case = string.partition(":")
        return PhpEnum(class_name, case)

    def _token(self) -> tuple[str, bytes]:
        token = _TOKEN.match(self._data, self._at)
        if token is None or token.lastgroup is None:
            raise self._refused(_UNSUPPORTED.get(self._data[self._at : self._at + 2], "no value"))
        self._at = token.end()
        return token.lastgroup, token[token.lastgroup]

    def _string(self, size: int, closing: bytes) -> str:
        start, end = self._at, self._at + size
        self._close(end, closing)
        return self._data[start:end].decode("utf-8", "surrogateescape")

    def _close(self, at: int, closing: bytes) -> None:
        if not self._data.startswith(closing, at):
            raise self._refused("a wrong size")
        self._at = at + len(closing)

    def _object(self, size: int, depth: int) -> PhpObject:
        class_name = self._string(size, b'":')
        count = _PROPERTY_COUNT.match(self._data, self._at)
        if count is None:
            raise self._refused("no property count")
        self._at = count.end()
        pairs = self._pairs(int(count[1]), depth)
        # A protected name is written NUL * NUL name, a private one NUL class NUL name.
        return PhpObject(class_name, {str(key).rpartition("\0")[2]: value for key, value in pairs.items()})

    def _pairs(self, count: int, depth: int) -> dict[int | str, PhpValue]:
        # The announced count is deducted before anything is read, so that a length bomb costs nothing.
        self._values_left -= count
        if self._values_left < 0:
            raise self._refused(f"more than {MAX_VALUES} values")
        pairs = {self._key(): self._value(depth + 1) for _ in range(count)}
        self._close(self._at, b"}")
        return pairs

    def _key(self) -> int | str:
        kind, text = self._token()
        if kind == "int":
            return int(text)
        if kind == "string":
            return self._string(int(text), b'";')
        raise self._refused(f"a key of type {kind}")

    def _refused(self, problem: str) -> PhpDataRefused:
        return PhpDataRefused(f"{problem} at byte {self._at}")


def _list_or_dict(pairs: dict[int | str, PhpValue]) -> PhpValue:
    if all(key == index for index, key in enumerate(pairs)):
        return list(pairs.values())
    return pairs
