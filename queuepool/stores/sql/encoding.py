"""Payloads are bytes, columns are texts."""

from __future__ import annotations


def bytes_of(value: str | bytes | memoryview | None) -> bytes:
    """A column's value as it was pushed; NULL is nothing at all."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value or b"")


def text_of(raw: bytes) -> str | bytes:
    """A text, if it is one: of the databases, SQLite alone takes anything else."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def storable(text: str) -> str:
    """Without the characters that PostgreSQL refuses, or no encoding has."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
