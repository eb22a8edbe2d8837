"""Conversions between payloads, which are bytes, and columns, which are texts; and exact comparison of names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import NamedTuple


class Charset(NamedTuple):
    """The characters that a column holds: those of Python's ``codec`` up to ``last``."""

    codec: str = "utf-8"
    last: str = chr(sys.maxunicode)

    def has(self, text: str) -> bool:
        """Whether the column can hold the text, apart from NUL."""
        try:
            text.encode(self.codec)
        except UnicodeEncodeError:
            return False
        return text.isascii() or max(text) <= self.last


UNICODE, ASCII = Charset(), Charset("ascii")


def bytes_of(value: str | bytes | memoryview | None) -> bytes:
    """A column's value as the bytes that were pushed; NULL is empty."""
    if isinstance(value, str):
        # Surrogates stand for bytes that were not UTF-8, from a database that does not check them (SQL_ASCII).
        return value.encode("utf-8", "surrogateescape")
    return bytes(value or b"")


def text_of(raw: bytes) -> str | bytes:
    """The text, if the bytes are UTF-8, else the bytes, which only SQLite takes."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def storable(text: str, charset: Charset = UNICODE) -> str:
    """The text with escapes for NUL, which PostgreSQL refuses, for lone surrogates, which have no encoding, and for
    what else the column does not hold.
    """
    return _fitted(text, charset, _escape).replace("\0", "\\x00")


def storable_json(text: str, charset: Charset = UNICODE) -> str:
    """The same for JSON, by its own escapes, which do not change its meaning."""
    return _fitted(text, charset, _escape_json).replace("\0", "\\u0000")


def _fitted(text: str, charset: Charset, escape: Callable[[str], str]) -> str:
    if charset.has(text):
        return text
    return "".join(one if charset.has(one) else escape(one) for one in text)


def _escape(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode()


def _escape_json(character: str) -> str:
    return json.dumps(character)[1:-1]
