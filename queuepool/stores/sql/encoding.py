"""Conversions between payloads, which are bytes, and columns, which are texts."""

from __future__ import annotations


def bytes_of(value: str | bytes | memoryview | None) -> bytes:
    """A column's value as the bytes that were pushed; NULL is empty."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value or b"")


def text_of(raw: bytes) -> str | bytes:
    """The text, if the bytes are UTF-8, else the bytes, which only SQLite takes."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def storable(text: str) -> str:
    """The text with NUL, which PostgreSQL refuses, and lone surrogates, which have no encoding, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
