"""Fixed-size records in shared memory: a class lists its fields, each gets its place.

A number is written by one store of at most eight aligned bytes, so that a reader in another process sees the old or the
new one. A text is not: readers of a live slot may see half of one, which nobody decides by.
"""

from __future__ import annotations

import struct
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T", int, float, str)
_WORD = 8


class Field(Generic[T]):
    """One place in a record, eight-byte aligned."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // _WORD) * _WORD
        self.offset = 0

    @overload
    def __get__(self, record: None, owner: type[Record]) -> Field[T]: ...
    @overload
    def __get__(self, record: Record, owner: type[Record]) -> T: ...
    def __get__(self, record: Record | None, owner: type[Record]) -> Field[T] | T:
        return self if record is None else self.read(record)

    def __set__(self, record: Record, value: T) -> None:
        raise NotImplementedError

    def read(self, record: Record) -> T:
        raise NotImplementedError


class Whole(Field[int]):
    """A whole number of 63 bits."""

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record) -> int:
        return record.wholes[self.offset // _WORD]

    def __set__(self, record: Record, value: int) -> None:  # straight, for the loop writes many
        record.wholes[self.offset // _WORD] = value


class Seconds(Field[float]):
    """A time or a duration; 0.0 = none."""

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record) -> float:
        return record.reals[self.offset // _WORD]

    def __set__(self, record: Record, value: float) -> None:
        record.reals[self.offset // _WORD] = value


class Text(Field[str]):
    """UTF-8 up to ``most`` bytes; what is longer is cut."""

    _length = struct.Struct("=H")

    def __init__(self, most: int) -> None:
        super().__init__(most + self._length.size)
        self._most = most

    def read(self, record: Record) -> str:
        at = record.base + self.offset
        (length,) = self._length.unpack_from(record.memory, at)
        first = at + self._length.size
        return bytes(record.memory[first : first + min(length, self._most)]).decode("utf-8", "replace")

    def __set__(self, record: Record, value: str) -> None:
        at, raw = record.base + self.offset, value.encode("utf-8", "replace")
        if len(raw) > self._most:
            raw = raw[: self._most].decode("utf-8", "ignore").encode()
        first = at + self._length.size
        record.memory[first : first + len(raw)] = raw
        self._length.pack_into(record.memory, at, len(raw))


class Record:
    """A view of ``memory`` from ``base`` on; subclasses list their fields in order."""

    #: bytes of all fields
    size = 0

    def __init__(self, memory: Any, base: int) -> None:
        self.memory = memory
        self.base = base
        # Assigned through a view, a number is one store; struct would write zeros first.
        mine = memoryview(memory)[base : base + self.size]
        self.wholes = mine.cast("q")
        self.reals = mine.cast("d")

    def __init_subclass__(cls) -> None:
        offset = 0
        for field in vars(cls).values():
            if isinstance(field, Field):
                field.offset = offset
                offset += field.size
        cls.size = offset

    def clear(self) -> None:
        """All fields zero or empty."""
        self.memory[self.base : self.base + self.size] = bytes(self.size)
