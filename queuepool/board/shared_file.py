"""The bytes of a board's file, for those that must outlive whatever happens to it.

A mapping kills its reader with SIGBUS when the file is cut short, or when its directory is full. A system call fails
instead: so the master, the steward and the command line read and write by these, and workers alone, which write for
every job and may be replaced, have a mapping.
"""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from struct import Struct

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: what a file system says that cannot set room aside (musl's libc does not do it by writing)
_CANNOT_ALLOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_WORD = 8


class SharedFile:
    """``size`` bytes of an open file, to be indexed as a mapping is; what was cut off reads as zeros."""

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
            # Only where somebody cut the file: its room was set aside. What is lost is written again at the next tick.
            if error.errno not in _NO_ROOM:
                raise

    def words(self, base: int, code: str) -> Words:
        return Words(self, base, code)

    def allot(self, first: int, count: int) -> None:
        """Set room aside, so that no write there can fail. Raises ``OSError``."""
        try:
            os.posix_fallocate(self.fd, first, count)
        except OSError as error:
            if error.errno not in _CANNOT_ALLOT:
                raise

    def mend(self) -> bool:
        """As long as it was, if somebody has cut it; says whether."""
        is_cut = os.fstat(self.fd).st_size < self._size
        if is_cut:
            with suppress(OSError):  # no room even for that: what is missing reads as zeros
                os.ftruncate(self.fd, self._size)
        return is_cut

    def mapped(self) -> mmap.mmap:
        """The same as this process's memory. Raises ``OSError`` and, when it is cut, ``ValueError``."""
        # mmap keeps a copy of the descriptor, which takes the lowest number that is free. A job that truncates whatever
        # it has open would find it there, so it is nobody's.
        lowest = os.dup(self.fd)
        os.close(lowest)
        memory = mmap.mmap(self.fd, self._size)
        if os.path.sameopenfile(lowest, self.fd):
            with open(os.devnull, "rb") as null:
                os.dup2(null.fileno(), lowest, inheritable=False)
        return memory

    def close(self) -> None:
        os.close(self.fd)


class Words:
    """Numbers of eight bytes each, from ``base`` on; one system call moves one whole."""

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
