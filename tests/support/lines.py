"""Files that other processes append to."""

from __future__ import annotations

import os
from pathlib import Path


def whole_lines(path: Path) -> list[str]:
    """The lines that have their end; none if there is no file yet. A writer may be in the midst of the last one."""
    try:
        return path.read_text().rpartition("\n")[0].splitlines()
    except FileNotFoundError:
        return []


class Pipe:
    """What has come so far out of a descriptor that does not block; a line may come in parts, or not yet."""

    def __init__(self, reader: int) -> None:
        self._reader = reader
        self._read = b""

    def read(self) -> bytes:
        try:
            while more := os.read(self._reader, 1 << 16):
                self._read += more
        except BlockingIOError:
            pass
        return self._read
