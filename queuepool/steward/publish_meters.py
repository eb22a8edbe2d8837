"""Copy the meters to the file beside the board, where every process of this host can read them without the pool."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

from queuepool.board import meters as layout
from queuepool.board.board import Board
from queuepool.board.counts import file_of, parts_in_use, shape_of
from queuepool.board.meters import MeterMemory
from queuepool.board.shared_file import SharedFile

_PERIOD = 1.0
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_log = logging.getLogger("queuepool")


class PublishMeters:
    """Needs no store, so that the meters are read while it is away. ``memory`` has those of the board's pool."""

    def __init__(self, board: Board, memory: MeterMemory) -> None:
        self._board = board
        self._file = MetersFile(file_of(board.path), memory)
        self._due = 0.0
        self._problem = ""

    def run(self, now: float) -> float:
        if now >= self._due and self._is_there():
            self._due = now + _PERIOD
            self._write()
        return max(self._due - now, 0.0) or _PERIOD

    def _is_there(self) -> bool:
        """Whether the board is: without it, and without a master that removes all, the file would stay."""
        return self._board.path.exists() or self._board.has_master

    def _write(self) -> None:
        problem = ""
        try:
            if not self._file.write():
                _log.error("%s was damaged or gone, and is made anew", file_of(self._board.path))
        except OSError as error:
            problem = f"{error.strerror}"
        if problem and problem != self._problem:
            _log.error("cannot write %s: %s; next try in %gs", file_of(self._board.path), problem, _PERIOD)
        self._problem = problem


class MetersFile:
    """The file with a pool's meters at ``path``: an image of their ``memory``, written by the steward alone.

    It is written by system calls: a mapping would end the steward with SIGBUS if somebody cut the file short. The
    memory has everything, so a damaged file is made anew from it at once.
    """

    def __init__(self, path: Path, memory: MeterMemory) -> None:
        self._path = path
        self._memory = memory
        self._shape = memory.shape
        self._file: SharedFile | None = None
        #: what was written, by its first byte
        self._written: dict[int, bytes] = {}

    def write(self) -> bool:
        """Write what has changed. ``False``: the file was damaged or gone, and is made anew. Raises ``OSError``."""
        was_published = self._take_published()
        if is_new := not self._is_intact():
            self._make()
        if self._file:
            for first, raw in self._parts():
                if self._written.get(first) != raw:
                    self._file[first : first + len(raw)] = raw
                    self._written[first] = raw
        return not (is_new and was_published)

    def _parts(self) -> list[tuple[int, bytes]]:
        """In the order in which they are written: the numbers of rows come after the rows."""
        parts = [(0, self._memory[0 : self._shape.area_at(0)])]
        for index in range(self._shape.capacity):
            parts += parts_in_use(self._memory, self._shape, index)
        return [(first, raw) for first, raw in reversed(parts) if raw]

    def _is_intact(self) -> bool:
        """Whether the file is in its place, whole and ours; an earlier steward may have made it."""
        try:
            if self._file is None:
                self._file = SharedFile(os.open(self._path, _FLAGS), self._shape.size)
            here, there = os.fstat(self._file.fd), self._path.lstat()
            is_whole = shape_of(self._file) == self._shape
            return is_whole and os.path.samestat(here, there) and here.st_uid == os.geteuid()
        except OSError:
            return False

    def _make(self) -> None:
        """A new file in its place: complete or absent."""
        self.close()
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.unlink(missing_ok=True)
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        self._file = SharedFile(os.open(draft, flags, 0o600), self._shape.size)
        os.ftruncate(self._file.fd, len(self._file))  # sparse: most slots are never used
        for first, raw in self._parts():
            self._file[first : first + len(raw)] = raw
        draft.replace(self._path)

    def _take_published(self) -> bool:
        """Whether a steward of this pool has made the file before."""
        words = memoryview(self._memory)[: layout.FIRST_QUEUE * layout.WORD].cast("q")
        was, words[layout.PUBLISHED] = bool(words[layout.PUBLISHED]), 1
        return was

    def close(self) -> None:
        """Close the file."""
        self._written.clear()
        if self._file:
            with suppress(OSError):
                os.close(self._file.fd)
            self._file = None
