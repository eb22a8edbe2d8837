"""The strings and brackets of a JSON text, found in one pass, whatever its bytes are: it need not be JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

#: A string, to its end or to that of the text. Where one begins, this always matches, so no byte is read a second time:
#: with closed strings only, each quote within an unclosed one would be tried as the beginning of another. Possessive:
#: a repetition that could be taken back takes a hundred bytes of memory for each escaped character.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
#: a string, or what changes the depth
_TOKEN = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_LEVELS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
#: by byte: what it adds to the depth
_STEPS = [_LEVELS.get(bytes([byte]), 0) for byte in range(256)]
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
_COLON = re.compile(rb"\s*+:\s*+")
#: an object of strings alone
_TEXTS = re.compile(rb"\{(?:[\s:,]*+" + _STRING + rb")*+\s*+\}", re.DOTALL)


def depth_of(raw: bytes) -> int:
    """How deep the brackets outside of strings are nested."""
    brackets = _STRINGS.sub(b"", raw).translate(None, delete=_NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def values_of(raw: bytes, key: bytes) -> Iterator[int]:
    """Where the values of this key at the top level of an object begin; the key is given in its quotes."""
    depth = 0
    for token in _TOKEN.finditer(raw):
        if depth == 1 and token[0] == key and (colon := _COLON.match(raw, token.end())):
            yield colon.end()
        depth += _LEVELS.get(token[0], 0)


def texts_at(raw: bytes, start: int) -> bytes | None:
    """The object that begins here, if nothing is in it but strings."""
    found = _TEXTS.match(raw, start)
    return found[0] if found else None
