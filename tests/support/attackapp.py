"""Jobs that harm their process, its open files, and the memory that the pool shares."""

from __future__ import annotations

import ctypes
import os
import random
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from queuepool import job
from tests.support.gates import until_told
from tests.support.poolapp import note

#: every number on the board becomes this one
NAN, HUGE = struct.pack("d", float("nan")), struct.pack("q", 2**63 - 1)
SCRIBBLES: dict[str, Callable[[int], bytes]] = {
    "zeros": bytes,
    "ones": lambda size: b"\x01" * size,
    "set bits": lambda size: b"\xff" * size,
    "random": lambda size: random.Random(7).randbytes(size),
    "no numbers": lambda size: NAN * (size // 8),
    "huge numbers": lambda size: HUGE * (size // 8),
}


@job("truncate_open_files")
def truncate_open_files(gate: str = "") -> None:
    """Like a job that truncates files by the wrong descriptor."""
    cut = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            path = os.readlink(link)
            if "/run/" in path:
                os.ftruncate(int(link.name), 0)
                cut.append(path)
    note(event="cut", cut=cut)
    if gate:
        until_told(gate)


@job("truncate_board")
def truncate_board(size: int) -> None:
    for path in Path("run").glob("*/board.*"):
        if path.name.count(".") == 1:
            os.truncate(path, size)
    note(event="cut", size=size)


@job("scribble")
def scribble(how: str, gate: str = "", first: int = 0, last: int = 1 << 40, after: str = "") -> None:
    """Write over the board, from ``first`` to ``last``; finds the mapping as a stray pointer would.

    Not before the file ``after`` is there; and stays until ``gate`` is.
    """
    note(event="scribbles")
    if after:
        until_told(after)
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "board." in line:
            begin, end = (int(text, 16) for text in line.split()[0].split("-"))
            begin, end = begin + first, min(end, begin + last)
            ctypes.memmove(begin, SCRIBBLES[how](end - begin), end - begin)
    note(event="scribbled")
    if gate:
        until_told(gate)


@job("fill")
def fill() -> None:
    """Fill the runtime directory's disk to the last byte."""
    fd = os.open("run/filler", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while os.write(fd, bytes(1 << 16)):
            pass
    with suppress(OSError):
        while os.write(fd, b"x"):
            pass
    os.close(fd)
    note(event="filled")


@job("make_room")
def make_room() -> None:
    os.unlink("run/filler")


@job("big")
def big(text: str) -> None:
    note(event="big", size=len(text))
