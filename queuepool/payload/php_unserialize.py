"""Reads PHP's serialized data as inert Python data: nothing is executed, nothing is instantiated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from queuepool.payload.php_values import MAX_BYTES as MAX_BYTES
from queuepool.payload.php_values import MAX_DEPTH as MAX_DEPTH
from queuepool.payload.php_values import MAX_VALUES as MAX_VALUES
from queuepool.payload.php_values import PhpDataRefused as PhpDataRefused
from queuepool.payload.php_values import PhpEnum as PhpEnum
from queuepool.payload.php_values import PhpObject as PhpObject
from queuepool.payload.php_values import PhpValue as PhpValue


def parse(text: str) -> PhpValue:
    """The one value in ``text``; PHP arrays with the keys 0 to n-1 become lists, all others dicts.

    A value that ``text`` refers to again is the same Python object. Bytes that are not UTF-8 become surrogates
    (``surrogateescape``). Raises ``PhpDataRefused``.
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
    |r:(?P<r>[0-9]{1,9});|R:(?P<R>[0-9]{1,9});
    """,
    re.VERBOSE,
)
_PROPERTY_COUNT = re.compile(rb"([0-9]{1,9}):{")
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
        #: only if the text may hold a reference, which comes after a key, so after a semicolon
        self._references = References() if b";r:" in data or b";R:" in data else None
        self._bytes_left = MAX_BYTES - len(data)
        self._deepest = 0

    def read(self) -> PhpValue:
        value = self._value(1)
        if self._at < len(self._data):
            raise self._refused("trailing bytes")
        return value

    def _value(self, depth: int) -> PhpValue:
        if depth > MAX_DEPTH:
            raise self._refused(f"nested deeper than {MAX_DEPTH}")
        kind, text = self._token()
        if self._references is not None:
            return self._numbered_or_again(kind, text, depth, self._references)
        return _SCALARS[kind](text) if kind in _SCALARS else self._compound(kind, int(text), depth)

    def _numbered_or_again(self, kind: str, text: bytes, depth: int, references: References) -> PhpValue:
        if kind in ("r", "R"):
            return self._again(kind, int(text), depth)
        return self._numbered(kind, text, depth, references)

    def _numbered(self, kind: str, text: bytes, depth: int, references: References) -> PhpValue:
        place, start = references.begin(), self._at
        values, size, deepest = self._values_left, self._bytes_left, self._deepest
        self._deepest = depth
        value = _SCALARS[kind](text) if kind in _SCALARS else self._compound(kind, int(text), depth)
        size += self._at - start - self._bytes_left
        references.end(place, value, Extent(values - self._values_left, size, self._deepest - depth))
        self._deepest = max(self._deepest, deepest)
        return value

    def _again(self, kind: str, number: int, depth: int) -> PhpValue:
        try:
            value, extent = (self._references or References()).resolve(kind, number)
        except LookupError as error:
            raise self._refused(str(error)) from None
        self._deepest = max(self._deepest, depth + extent.levels)
        self._bytes_left -= extent.size
        self._charge(extent.values)
        if self._bytes_left < 0:
            raise self._refused(f"more than {MAX_BYTES} bytes")
        if self._deepest > MAX_DEPTH:
            raise self._refused(f"nested deeper than {MAX_DEPTH}")
        return value

    def _charge(self, values: int) -> None:
        self._values_left -= values
        if self._values_left < 0:
            raise self._refused(f"more than {MAX_VALUES} values")

    def _compound(self, kind: str, size: int, depth: int) -> PhpValue:
        if kind == "array":
            return _list_or_dict(self._pairs(size, depth))
        if kind == "object":
            return self._object(size, depth)
        if kind in ("r", "R"):  # at the beginning, where there is nothing to refer to
            return self._again(kind, size, depth)
        string = self._string(size, b'";')
        if kind == "string":
            return string
        class_name, _, case = string.partition(":")
        return PhpEnum(class_name, case)

    def _token(self) -> tuple[str, bytes]:
        token = _TOKEN.match(self._data, self._at)
        if token is None or token.lastgroup is None:
            is_custom = self._data.startswith(b"C:", self._at)
            raise self._refused("a custom serializer" if is_custom else "no value")
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
        self._charge(count)
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


class Extent(NamedTuple):
    """The size of a value: values and bytes in it, and levels below it.

    A reference to the value is charged the same, since a walk through the result meets the value again.
    """

    values: int
    size: int
    levels: int


class Numbered(NamedTuple):
    """A value that has been read to its end."""

    value: PhpValue
    extent: Extent


class References:
    """The values of one text by their numbers.

    A value that occurs again is written as the number of its first occurrence. A value takes its number, counted from
    1, before the values in it. So does ``r:``, an object that occurs again; ``R:``, a variable that two names share,
    and keys take none.
    Source: ext/standard/var_unserializer.re and var.c, php_add_var_hash (PHP 8.2).
    """

    def __init__(self) -> None:
        #: ``None``: not yet read to its end
        self._numbered: list[Numbered | None] = []

    def begin(self) -> int:
        """Take a number for the value that begins; returns its place for ``end``."""
        self._numbered.append(None)
        return len(self._numbered) - 1

    def end(self, place: int, value: PhpValue, extent: Extent) -> None:
        """Set the value that was read."""
        self._numbered[place] = Numbered(value, extent)

    def resolve(self, kind: str, number: int) -> Numbered:
        """The value that ``r:`` or ``R:`` refers to. Raises ``LookupError`` with the reason if there is none.

        Values that contain themselves are refused: a walk through one would never end.
        """
        if not 0 < number <= len(self._numbered):
            raise LookupError("a reference to no value")
        found = self._numbered[number - 1]
        if found is None:
            raise LookupError("a reference to a value that contains it")
        if kind == "R":
            return found
        if not isinstance(found.value, (PhpObject, PhpEnum)):
            raise LookupError("an object reference to no object")
        self._numbered.append(found)
        return found
