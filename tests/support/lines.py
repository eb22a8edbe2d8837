"""Files that other processes append to."""

from __future__ import annotations

import os
import re
from itertools import accumulate
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


def fewest_workers(log: str, whole: int) -> int:
    """How few workers there were at any time after there were so many, by what they have logged.

    One has said that it starts before its master knows, and an old one says that it stops after its master told it to.
    Who looks at one process after the other may miss an old one that has just left, and the new one that has come.
    """
    steps = re.findall(r" (worker starting|worker stopping|process died role=worker)\b", log)
    there = list(accumulate(1 if step == "worker starting" else -1 for step in steps))
    return min(there[whole - 1 :])
