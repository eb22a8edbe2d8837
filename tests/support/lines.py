"""Files that other processes append to."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any


def whole_lines(path: Path) -> list[str]:
    """The lines that have their end; none if there is no file yet. A writer may be in the midst of the last one."""
    try:
        return path.read_text().rpartition("\n")[0].splitlines()
    except FileNotFoundError:
        return []


def parted(line: bytes) -> tuple[bytes, Any]:
    """The JSON object at the end of a line, and what stands before it. Raises ``ValueError`` if there is none.

    A writer that is killed in the middle of its line leaves the beginning: the kernel may write up to a page's end, and
    then see the signal. The next writer goes on behind that.
    """
    for brace in re.finditer(rb"\{", line):
        with suppress(ValueError):
            return line[: brace.start()], json.loads(line[brace.start() :])
    raise ValueError(f"no JSON: {line!r}")


class Appended:
    """The lines of one such file, of which each look reads only those that have been added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[dict[str, Any]] = []
        self._read = 0

    def read(self) -> list[dict[str, Any]]:
        """All of them so far, each of which is JSON."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._read)
            added = file.read().rpartition(b"\n")[0]
            self._lines += (parted(line)[1] for line in added.splitlines())
            self._read += len(added) + 1 if added else 0
        return self._lines


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


def time_of(line: str) -> float:
    """When a line of a pool's log was written, in Unix seconds."""
    return datetime.fromisoformat(line.split()[0]).timestamp()


def killed_at(log: str) -> float:
    """When the one worker was killed for its lease: by the log, since a test that looks may be late itself."""
    [line] = [line for line in log.splitlines() if "killed: LEASE" in line]
    return time_of(line)


def without_silences(log: str) -> str:
    """A pool's log without the outages of a store that was silent for two seconds, as a crowded machine's may be."""
    lines = log.splitlines(keepends=True)
    lost = [line for line in lines if re.search("store lost.*Timeout", line)]
    regained = [line for line in lines if "store regained" in line][: len(lost)]
    return "".join(line for line in lines if line not in (*lost, *regained))


def fewest_workers(log: str, whole: int) -> int:
    """How few workers there were at any time after there were so many, by what they have logged.

    One has said that it starts before its master knows, and an old one says that it stops after its master told it to.
    Who looks at one process after the other may miss an old one that has just left, and the new one that has come.
    """
    steps = re.findall(r" (worker starting|worker stopping|process died role=worker)\b", log)
    there = list(accumulate(1 if step == "worker starting" else -1 for step in steps))
    return min(there[whole - 1 :])
