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
        return self if record is None else self.read(record, record.base + self.offset)

    def __set__(self, record: Record, value: T) -> None:
        self.write(record, record.base + self.offset, value)

    def read(self, record: Record, at: int) -> T:
        raise NotImplementedError

    def write(self, record: Record, at: int, value: T) -> None:
        raise NotImplementedError


class Whole(Field[int]):
    """A whole number of 63 bits."""

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record, at: int) -> int:
        return record.wholes[at // _WORD]

    def write(self, record: Record, at: int, value: int) -> None:
        record.wholes[at // _WORD] = value


class Seconds(Field[float]):
    """A time or a duration; 0.0 = none."""

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record, at: int) -> float:
        return record.reals[at // _WORD]

    def write(self, record: Record, at: int, value: float) -> None:
        record.reals[at // _WORD] = value


class Text(Field[str]):
    """UTF-8 up to ``most`` bytes; what is longer is cut."""

    _length = struct.Struct("=H")

    def __init__(self, most: int) -> None:
        super().__init__(most + self._length.size)
        self._most = most

    def read(self, record: Record, at: int) -> str:
        (length,) = self._length.unpack_from(record.memory, at)
        first = at + self._length.size
        return bytes(record.memory[first : first + min(length, self._most)]).decode("utf-8", "replace")

    def write(self, record: Record, at: int, value: str) -> None:
        raw = value.encode("utf-8", "replace")
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
        self.wholes = memoryview(memory).cast("q")
        self.reals = memoryview(memory).cast("d")

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
