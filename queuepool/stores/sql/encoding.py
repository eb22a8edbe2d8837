"""Conversions between payloads, which are bytes, and columns, which are texts; and exact comparison of names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Dialect, LargeBinary, Text, and_, cast, func, literal_column, type_coerce


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


# Compares names by their bytes, as Redis and most databases do. MySQL's collations treat many names as equal.
#
# The comparison that MySQL's index supports comes first: it finds a few rows, whose bytes are then compared.

_MYSQL = ("mysql", "mariadb")
_UTF8: ColumnElement[Any] = literal_column("utf8mb4")


def is_name(dialect: Dialect, column: ColumnElement[Any], name: Any) -> ColumnElement[bool]:
    """Whether the column is exactly this name."""
    same = column == name
    return and_(same, _bytes_of(column) == name) if dialect.name in _MYSQL else same


def is_one_of(dialect: Dialect, column: ColumnElement[Any], names: Any) -> ColumnElement[bool]:
    """Whether the column is exactly one of these names."""
    same = column.in_(names)
    return and_(same, _bytes_of(column).in_(names)) if dialect.name in _MYSQL else same


def exactly(dialect: Dialect, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The exact name, for comparisons among rows."""
    return _bytes_of(column) if dialect.name in _MYSQL else column


def _bytes_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The bytes in the connection's encoding, whatever the column's is.

    Trailing spaces count, unlike in any collation that both MySQL and MariaDB have.
    """
    return type_coerce(cast(func.convert(column.op("USING")(_UTF8)), LargeBinary), Text)
