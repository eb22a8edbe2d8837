"""Fixed-size records in shared memory: a class lists its fields, and each field gets an offset.

A number is written by one store of eight aligned bytes, so a reader in another process sees either the old or the new
one. A text is not: a reader of a live slot may see half of one, so nothing is decided by a text.

Any job of the pool can overwrite this memory, so every reader must be prepared for any bits (``as_count``).

The memory is a file, and a mapping kills its reader with SIGBUS when the file is truncated or its file system is full.
A system call fails instead. So the master, the steward and the command line use system calls (``SharedFile``); only
workers, which write for every job and can be replaced, use a mapping.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from math import isfinite
from struct import Struct
from typing import Any, Generic, Self, TypeVar, overload

#: what may be raised on reading what a job has overwritten, or what another program has put into the store
DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
T = TypeVar("T", int, float, str)
_WORD = 8
_MAX_COUNT = 2**48
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: errors of a file system that cannot allocate space (musl's libc does not emulate it by writing)
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def as_count(value: int) -> int:
    """A count read from the memory; 0 if it cannot be one. The field always has room for one more."""
    return value if 0 <= value < _MAX_COUNT else 0


def as_time(value: float) -> float:
    """Unix seconds that another program may have written. Raises ``ValueError`` or ``TypeError`` for anything else."""
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


class SharedFile:
    """``size`` bytes of an open file, indexed like a mapping; a truncated part reads as zeros."""

    def __init__(self, fd: int, size: int) -> None:
        self.fd = fd
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        first, last, _ = place.indices(self._size)
        count = max(last - first, 0)
        return os.pread(self.fd, count, first).ljust(count, b"\0")

    def __setitem__(self, place: int | slice, raw: int | bytes) -> None:
        first = place if isinstance(place, int) else place.start
        try:
            os.pwrite(self.fd, raw if isinstance(raw, bytes) else bytes([raw]), first)
        except OSError as error:
            # Only if the file was truncated, as its space was allocated. The next tick writes again what is lost.
            if error.errno not in _NO_ROOM:
                raise

    def words(self, base: int, code: str) -> Words:
        """The numbers from ``base`` on, of eight bytes each, by their struct ``code``."""
        return Words(self, base, code)

    def allocate(self, first: int, count: int) -> None:
        """Allocate disk space, if the file system can, so that no write there fails. Raises ``OSError``."""
        try:
            os.posix_fallocate(self.fd, first, count)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOCATE:
                raise

    def restore_length(self) -> bool:
        """Restore the length if the file was truncated; returns whether it was."""
        is_cut = os.fstat(self.fd).st_size < self._size
        if is_cut:
            with suppress(OSError):  # no room even for that: the missing part reads as zeros
                os.ftruncate(self.fd, self._size)
        return is_cut

    def mapped(self) -> mmap.mmap:
        """The file mapped into this process's memory. Raises ``OSError``, and ``ValueError`` when it is truncated."""
        # mmap keeps a duplicate of the descriptor, at the lowest free number. A job that truncates all of its open
        # files would find it there, so that number is redirected to /dev/null.
        lowest = os.dup(self.fd)
        os.close(lowest)
        memory = mmap.mmap(self.fd, self._size)
        if os.path.sameopenfile(lowest, self.fd):
            with open(os.devnull, "rb") as null:
                os.dup2(null.fileno(), lowest, inheritable=False)
        return memory

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)


class Words:
    """Numbers of eight bytes each, from ``base`` on; one system call reads or writes a whole number."""

    def __init__(self, file: SharedFile, base: int, code: str) -> None:
        self._file = file
        self._base = base
        self._struct = Struct(f"={code}")

    def __getitem__(self, number: int) -> int | float:
        first = self._base + number * _WORD
        value: int | float = self._struct.unpack(self._file[first : first + _WORD])[0]
        return value

    def __setitem__(self, number: int, value: float) -> None:
        first = self._base + number * _WORD
        self._file[first : first + _WORD] = self._struct.pack(value)
