"""Fixed-size records in shared memory: a class lists its fields, and each field gets an offset.

A number is written by one store of eight aligned bytes, so a reader in another process sees either the old or the new
one. A text is not: a reader of a live slot may see half of one, so nothing is decided by a text.

Any job of the pool can overwrite this memory, so every reader must be prepared for any bits (``as_count``).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import takewhile
from math import isfinite
from typing import Any, Generic, Self, TypeVar, overload

from queuepool.board.shared_file import SharedFile

#: what may be raised on reading what a job has overwritten, or what another program has put into the store
DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)

T = TypeVar("T", int, float, str)
_WORD = 8
_MAX_COUNT = 2**48


def as_count(value: int) -> int:
    """A count read from the memory; 0 if it cannot be one. The field always has room for one more."""
    return value if 0 <= value < _MAX_COUNT else 0


def as_time(value: float) -> float:
    """Unix seconds that another program may have written. Raises ``ValueError`` or ``TypeError`` for no time."""
    if not 0 <= float(value) < _MAX_COUNT:
        raise ValueError("not a time")
    return float(value)


def as_counts(values: Sequence[int]) -> list[int]:
    """``as_count`` of each; there is one value at least."""
    is_sound = min(values) >= 0 and max(values) < _MAX_COUNT  # as almost always: all at once takes a tenth of the time
    return list(values) if is_sound else list(map(as_count, values))


class Field(Generic[T]):
    """One field of a record, eight-byte aligned."""

    #: the struct code of a number
    code = ""

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
        """The field's present value."""
        raise NotImplementedError


class Whole(Field[int]):
    """A whole number of 63 bits."""

    code = "q"

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record) -> int:
        value: int = record.wholes[self.offset // _WORD]
        return value

    def __set__(self, record: Record, value: int) -> None:  # direct, since the loop writes many
        record.wholes[self.offset // _WORD] = value


class Seconds(Field[float]):
    """A time or a duration in seconds; 0.0 = none, and NaN or infinity reads as none."""

    code = "d"

    def __init__(self) -> None:
        super().__init__(_WORD)

    def read(self, record: Record) -> float:
        value: float = record.reals[self.offset // _WORD]
        return value if isfinite(value) else 0.0

    def __set__(self, record: Record, value: float) -> None:
        record.reals[self.offset // _WORD] = value


class Text(Field[str]):
    """UTF-8 of up to ``max_bytes`` bytes; a longer text is cut."""

    _length = struct.Struct("=H")

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes + self._length.size)
        self._max_bytes = max_bytes

    def read(self, record: Record) -> str:
        at, head = record.base + self.offset, self._length.size
        raw = bytes(record.memory[at : at + head + self._max_bytes])
        (length,) = self._length.unpack(raw[:head])
        return raw[head : head + length].decode("utf-8", "replace")

    def __set__(self, record: Record, value: str) -> None:
        at, raw = record.base + self.offset, value.encode("utf-8", "replace")
        if len(raw) > self._max_bytes:
            raw = raw[: self._max_bytes].decode("utf-8", "ignore").encode()
        first = at + self._length.size
        record.memory[first : first + len(raw)] = raw
        record.memory[at:first] = self._length.pack(len(raw))


class Record:
    """A view of ``memory`` from ``base`` on; subclasses list their fields in order."""

    #: bytes of all fields
    size = 0
    #: the names of the numbers before the first text, and their layout
    _numbers: tuple[str, ...] = ()
    _packed = struct.Struct("=")

    def __init__(self, memory: Any, base: int) -> None:
        self.memory = memory
        self.base = base
        self.wholes: Any
        self.reals: Any
        if isinstance(memory, SharedFile):
            self.wholes, self.reals = memory.words(base, "q"), memory.words(base, "d")
            return
        # An assignment through a view is one store; struct would write zeros first.
        view = memoryview(memory)[base : base + self.size]
        self.wholes, self.reals = view.cast("q"), view.cast("d")

    def __init_subclass__(cls) -> None:
        fields = {name: field for name, field in vars(cls).items() if isinstance(field, Field)}
        offset = 0
        for field in fields.values():
            field.offset = offset
            offset += field.size
        cls.size = offset
        leading = list(takewhile(lambda name: isinstance(fields[name], (Whole, Seconds)), fields))
        cls._numbers = tuple(leading)
        cls._packed = struct.Struct("=" + "".join(fields[name].code for name in leading))

    def numbers(self) -> dict[str, Any]:
        """The numbers before the first text by name, unchecked, in one read."""
        raw = self.memory[self.base : self.base + self._packed.size]
        return dict(zip(self._numbers, self._packed.unpack(raw), strict=True))

    def copy(self) -> Self:
        """All fields as they are now, in this process's own memory: one read for all of them."""
        return type(self)(self.memory[self.base : self.base + self.size], 0)

    def clear(self) -> None:
        """Set all fields to zero or empty."""
        self.memory[self.base : self.base + self.size] = bytes(self.size)
