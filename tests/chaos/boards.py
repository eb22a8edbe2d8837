"""Jobs that write where they must not: over the pool's board, or into inherited files."""

from __future__ import annotations

import ctypes
import os
import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PAGE = 4096
_SHARE = 0.5


def scribble() -> None:
    """Over half of the pages of a board that are in use."""
    nothing = bytes(_PAGE)
    for page in _pages():
        if ctypes.string_at(page, _PAGE) != nothing and random.random() < _SHARE:
            ctypes.memmove(page, random.choice(_RUBBISH)(), _PAGE)


def truncate() -> None:
    """Everything of the runtime directory that this process has open, and every board that it has mapped."""
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError, ValueError):
            if _is_the_pools(os.readlink(f"/proc/self/fd/{entry}")):
                os.ftruncate(int(entry), 0)
    for _, _, path in _mapped():
        with suppress(OSError):
            os.truncate(path, 0)


def _pages() -> Iterator[int]:
    """Those that this process may write to."""
    for area, rights, _ in _mapped():
        if "w" in rights:
            first, last = (int(word, 16) for word in area.split("-"))
            yield from range(first, last, _PAGE)


def _mapped() -> Iterator[tuple[str, str, str]]:
    """Where, with which rights, what file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, _, _, _, *path = line.split(maxsplit=5)
        if path and "s" in rights and _is_the_pools(path[0]):
            yield area, rights, path[0]


def _is_the_pools(path: str) -> bool:
    name = Path(path.removesuffix(" (deleted)")).name
    return name.startswith(("board", "memfd:")) or name == "master.pid"


_RUBBISH = (
    lambda: random.randbytes(_PAGE),
    lambda: bytes(_PAGE),
    lambda: b"\xff" * _PAGE,
    lambda: struct.pack("=d", float("nan")) * (_PAGE // 8),
)
ON_BOARDS = {"scribble": scribble, "truncate": truncate}
