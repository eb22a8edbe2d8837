"""Strict JSON: refuses what two parsers might read differently."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from queuepool.errors import BadPayload
from queuepool.payload.scan import depth_of

#: the depth at which the server's cjson stops, too
MAX_DEPTH = 999
MAX_BYTES = 16 * 1024 * 1024
#: with fewer brackets the depth is not checked
_SHALLOW = 250


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
    if end != len(text):  # white space around it, or not JSON: decode() handles both
        value = _DECODER.decode(text)
    if "\\u" in text:
        # A lone surrogate is not a character: it cannot be stored or printed. encode() raises.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _brackets(raw: bytes) -> int:
    return raw.count(b"{") + raw.count(b"[")


def _read_deep(raw: bytes) -> Any:
    """The decoder recurses: the deepest allowed payload needs a higher recursion limit than Python's default."""
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


# Created once: json.loads would create one for every payload.
_DECODER = json.JSONDecoder(object_pairs_hook=_unambiguous, parse_constant=_refuse_number, parse_float=_finite)
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
