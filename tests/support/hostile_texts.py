"""Texts that are made to keep who reads them busy: of about ``size`` bytes, each of one kind."""

from __future__ import annotations

from collections.abc import Mapping

#: how each begins, what is repeated, and how it ends
_MADE: Mapping[str, tuple[bytes, bytes, bytes]] = {
    "brackets, and a string of escaped quotes without an end": (b'{"a":' + b"[" * 1100 + b'"', b'\\"', b""),
    "pairs of brackets, and the same": (b'{"a":' + b"[]" * 1100 + b'"', b'\\"', b""),
    "one escape, and quotes": (b'{"a":' + b"[" * 1100 + b'"\\', b'"', b""),
    "quotes": (b"", b'"', b""),
    "escapes": (b'{"', b"\\", b""),
    "open brackets": (b"", b"[", b""),
    "open objects": (b"", b'{"a":', b""),
    "empty lists": (b'{"a":[', b"[],", b'0],"attempts":0} '),
    "empty texts": (b'{"a":[', b'"",', b'0],"attempts":0} '),
    "spaces": (b"{", b" ", b""),
    "attempts, and spaces": (b'{"attempts"', b" ", b"1}"),
    "attempts without a number": (b"{", b'"attempts":   ', b""),
    "attempts as texts": (b"{", b'"attempts",', b'"attempts":0} '),
    "attempts of many digits": (b'{"attempts":', b"1", b"} "),
    "attempts within": (b'{"a":[', b'{"attempts":1 },', b"0]} "),
    "numbers without an end": (b'{"a":', b"1", b""),
    "a fraction": (b'{"a":0.', b"0", b'1,"attempts":0} '),
    "escaped letters": (b'{"a":"', b"\\u00e9", b'","attempts":0} '),
    "halves of pairs": (b'{"a":"', b"\\ud800", b'","attempts":0} '),
    "signatures": (b"{", b'"qp":{', b""),
    "signatures as texts": (b"{", b'"qp"  ,', b'"qp":1}'),
    "a signature of many texts": (b'{"qp":{', b'"",', b""),
    "a signature without an end": (b'{"qp":{"body":"', b'\\"qp":{', b""),
    "php: arrays": (b"", b"a:1:{i:0;", b""),
    "php: objects": (b'O:1:"a":1:{s:1:"b";', b'O:1:"a":1:{s:1:"b";', b""),
    "php: references": (b"a:99999:{", b"i:1;r:1;", b"}"),
    "php: digits": (b"i:", b"1", b";"),
    "php: texts": (b"a:99999:{", b'i:0;s:0:"";', b"}"),
}


def hostile(size: int) -> dict[str, bytes]:
    """The texts by what they are."""
    return {name: _repeated(size, *parts) for name, parts in _MADE.items()}


def _repeated(size: int, start: bytes, part: bytes, end: bytes) -> bytes:
    return start + part * ((size - len(start) - len(end)) // len(part)) + end
