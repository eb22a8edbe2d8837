"""JSON as payloads have it: strict when we read it, plain when we write it.

Reading refuses what two parsers might read differently. Values that JSON does not know are written as plain text and
numbers, which PHP can read too; their type is lost. What we have written is checked to be readable.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from itertools import accumulate
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from queuepool.errors import BadPayload, NotSendable

#: the depth at which cjson, in Redis, stops too
MAX_DEPTH = 999
MAX_BYTES = 16 * 1024 * 1024
#: with fewer brackets the depth is not checked
_SHALLOW = 250
T = TypeVar("T")


def read_object(raw: bytes) -> dict[str, Any]:
    """The one object that ``raw`` holds.

    Raises ``BadPayload``: more than ``MAX_BYTES``, not UTF-8, not JSON, not an object, a duplicate key, NaN or a
    number that overflows to infinity, a lone surrogate, nested deeper than ``MAX_DEPTH``.
    """
    if len(raw) > MAX_BYTES:
        raise BadPayload("too-large")
    try:
        value = _read(raw) if len(raw) < _SHALLOW or _brackets(raw) < _SHALLOW else _read_deep(raw)
    except UnicodeError as error:
        raise BadPayload("utf-8") from error
    except (ValueError, RecursionError) as error:
        raise BadPayload("json") from error
    if not isinstance(value, dict):
        raise BadPayload("not-an-object")
    return value


def _read(raw: bytes) -> Any:
    text = raw.decode("utf-8")
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):  # surrounding white space, or not JSON: decode() handles both
        value = _DECODER.decode(text)
    if "\\u" in text:
        # A lone surrogate is not a character: it cannot be stored or printed. encode() raises.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _brackets(raw: bytes) -> int:
    return raw.count(b"{") + raw.count(b"[")


def _read_deep(raw: bytes) -> Any:
    """As ``_read``: the decoder recurses, and the deepest payloads need more than Python's default recursion limit."""
    if _brackets(raw) > MAX_DEPTH and depth_of(raw) > MAX_DEPTH:
        raise BadPayload("too-deep")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 3 * MAX_DEPTH)
    try:
        return _read(raw)
    finally:
        sys.setrecursionlimit(limit)


def _unambiguous(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadPayload("duplicate-key")
    return fields


def _refuse_number(text: str) -> float:
    raise BadPayload("not-a-number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadPayload("not-a-number")
    return number


#: created once: json.loads would create one for every payload
_DECODER = json.JSONDecoder(object_pairs_hook=_unambiguous, parse_constant=_refuse_number, parse_float=_finite)
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
# What Python can write as JSON but a worker refuses to read: keys that become one, and too deep nesting.

_PLAIN = frozenset((str, int, float, bool, type(None)))
_WORDS: Mapping[str, str] = MappingProxyType({
    "duplicate-key": "two keys of a dict become one in JSON, like 1 and '1'",
    "too-deep": f"it is nested deeper than {MAX_DEPTH}",
})  # fmt: skip


def check_readable(value: object, raw: bytes) -> None:
    """Raise ``NotSendable`` if a worker could not read ``raw``, the JSON of this value.

    It is read only if the value is not plain: checking plain dicts and lists costs a tenth of encoding them, reading
    them as much as that.
    """
    try:
        if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH and _is_plain(value):
            return
    except RecursionError:  # by Python's limit: a worker reads deeper
        pass
    try:
        read_object(raw)
    except BadPayload as error:
        raise NotSendable(_WORDS.get(error.reason, f"a worker cannot read its JSON: {error.reason}")) from error


def _is_plain(value: object) -> bool:
    """Whether it consists of JSON's own types, with strings as keys."""
    kind = type(value)
    if kind is dict:
        for key, inner in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or (type(inner) not in _PLAIN and not _is_plain(inner)):
                return False
        return True
    if kind is list or kind is tuple:
        for inner in value:  # type: ignore[attr-defined]  # noqa: SIM110 - a generator would halve the depth
            if type(inner) not in _PLAIN and not _is_plain(inner):
                return False
        return True
    return kind in _PLAIN


# Finds strings and brackets in one pass over any bytes, even if they are not JSON.

#: A string up to its closing quote or the end of the text. At an opening quote this always matches, so no byte is read
#: twice: if only closed strings matched, each quote in an unclosed one would be tried as another beginning. Possessive,
#: as backtracking takes a hundred bytes of memory for each escaped character.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
#: a string, or what changes the depth
_TOKEN = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_LEVELS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
#: what each byte adds to the depth
_STEPS = [_LEVELS.get(bytes([byte]), 0) for byte in range(256)]
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_COLON = re.compile(rb"\s*+:\s*+")
#: an object with nothing but strings
_TEXTS = re.compile(rb"\{(?:[\s:,]*+" + _STRING + rb")*+\s*+\}", re.DOTALL)


def depth_of(raw: bytes) -> int:
    """How deep the brackets outside of strings are nested."""
    brackets = _STRINGS.sub(b"", raw).translate(None, delete=_NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def values_of(raw: bytes, key: bytes) -> Iterator[int]:
    """Where the values of this key at the top level of an object begin; ``key`` includes its quotes."""
    depth = 0
    for token in _TOKEN.finditer(raw):
        if depth == 1 and token[0] == key and (colon := _COLON.match(raw, token.end())):
            yield colon.end()
        depth += _LEVELS.get(token[0], 0)


def texts_at(raw: bytes, start: int) -> bytes | None:
    """The object that begins here, if it has nothing but strings."""
    found = _TEXTS.match(raw, start)
    return found[0] if found else None


class OwnType(NamedTuple):
    """How an application's type is written to a payload and read from it."""

    to_json: Callable[[Any], object]
    from_json: Callable[[Any], object]


_own: dict[type, OwnType] = {}


def register_type(cls: type[T], *, to_json: Callable[[T], object], from_json: Callable[[Any], T]) -> None:
    """Allow values of your own type as arguments of jobs.

    ``to_json`` returns what the payload holds. In the worker, ``from_json`` turns that back into a value for an
    argument that is annotated with this type. Call this where the type is defined: producers and workers both need it.
    """
    _own[cls] = OwnType(to_json, from_json)


def own_type(cls: type) -> OwnType | None:
    """The registration of this type or of its nearest base; ``None`` if there is none."""
    return next((_own[base] for base in cls.__mro__ if base in _own), None) if _own else None


def as_json(value: Any) -> object:
    """A JSON value for one that ``json`` does not know. Raises ``TypeError`` if there is none."""
    own = own_type(type(value))
    if own:
        return own.to_json(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if hasattr(value, "model_dump"):  # pydantic's, without importing it
        return value.model_dump(mode="json")
    return _of_the_library(value)


def _of_the_library(value: Any) -> object:
    from decimal import Decimal  # imported here: not needed at every start

    match value:
        case Enum():
            return value.value
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return _seconds_of(value)
        case Decimal() | UUID() | PurePath():
            return str(value)
        case set() | frozenset():
            return list(value)
        case Mapping():
            return dict(value)
    raise TypeError(f"no JSON for {_named(type(value))}{_hint(value)}")


def _seconds_of(value: timedelta) -> float:
    """Raises ``TypeError`` for the largest ``timedelta``, whose seconds as a float are beyond its range."""
    seconds = value.total_seconds()
    try:
        timedelta(seconds=seconds)
    except OverflowError:
        raise TypeError("a timedelta of 2.7 million years has no exact number of seconds") from None
    return int(seconds) if seconds.is_integer() else seconds


def _named(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _hint(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ": send text (base64), or where to find the bytes"
    return ": tell queuepool.register_type how to send it" if type(value).__module__ != "builtins" else ""
