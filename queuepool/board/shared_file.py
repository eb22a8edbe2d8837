"""The bytes of a board's file, for processes that must survive whatever happens to it.

A mapping kills its reader with SIGBUS when the file is truncated or its file system is full. A system call fails
instead. So the master, the steward and the command line use system calls; only workers, which write for every job and
can be replaced, use a mapping.
"""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import suppress
from struct import Struct

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: errors of a file system that cannot allocate space (musl's libc does not emulate it by writing)
_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_WORD = 8


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
