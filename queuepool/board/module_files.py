"""The files of the application's modules, for ``reload``: workers write them beside the board, for the steward."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from queuepool.board.board import Board, Slot
from queuepool.board.boot_report import replace_text, text_in

#: where packages are installed, which do not change while a program is being edited
_INSTALLED = ("site-packages", "dist-packages")


def publish(board: Board, slot: Slot, began: Mapping[str, float]) -> None:
    """Write which files this process has imported, each with the Unix time from which it has it. Raises ``OSError``."""
    # One per line: where the text is too long for its reader, the cut costs one file, not all.
    text = "\n".join(f"{since} {file}" for file, since in began.items())
    replace_text(_file_of(board, str(slot.index)), text)


def published(board: Board) -> dict[str, float]:
    """The files that workers have imported, each with the Unix time of its newest import."""
    found: dict[str, float] = {}
    for path in board.path.parent.glob(_file_of(board, "*").name):
        for line in text_in(path).splitlines():
            since, _, file = line.partition(" ")
            with suppress(ValueError):  # overwritten by a job
                found[file] = max(float(since), found.get(file, 0.0))
    return found


def imported() -> Iterator[str]:
    """The files of this process's modules, except installed packages, Python's own and ours."""
    library = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")  # not by getattr: a lazy module would import more
        if not isinstance(file, str) or name.partition(".")[0] == "queuepool":
            continue
        path = os.path.abspath(file)
        if not path.startswith(library) and not set(_INSTALLED) & set(Path(path).parts):
            yield path


def _file_of(board: Board, number: str) -> Path:
    return board.path.with_name(f"{board.path.name}.modules{number}")
