"""The boards of pools on this host that may be written to: those in private directories of this user."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from queuepool.board.about import About
from queuepool.board.board import Board
from queuepool.board.runtime_dir import base, problem_of
from queuepool.board.shared_file import SharedFile
from queuepool.errors import ConfigError


def default_folders(store: str) -> list[Path]:
    """The directories in the default place of pools on the store with this identity (``identity_of``)."""
    with suppress(ConfigError, OSError):
        return [folder for folder in sorted(base().iterdir()) if _is_on(folder, store)]
    return []


def _is_on(folder: Path, store: str) -> bool:
    about = About.read(folder)
    return about is not None and about.identity == store


@contextmanager
def boards_in(folders: Iterable[Path]) -> Iterator[list[Board]]:
    """The boards in these directories, also those of killed masters, until the block ends.

    A directory that is not private, or another user's, counts as empty: its boards may lead to any process.
    """
    with ExitStack() as stack:
        found = [board for folder in dict.fromkeys(folders) for board in _opened(folder)]
        for board in found:
            if isinstance(board.memory, SharedFile):
                stack.callback(board.memory.close)
        yield found


def _opened(folder: Path) -> Iterator[Board]:
    try:
        is_refused = problem_of(folder, folder.lstat(), os.getuid() or None)
    except OSError:
        return
    # The files beside a board have one more dot.
    for path in () if is_refused else sorted(folder.glob("board.*")):
        if path.name.count(".") == 1:
            with suppress(OSError, ValueError):  # it is gone by now, or of another version
                yield Board.open(path, write=True)
