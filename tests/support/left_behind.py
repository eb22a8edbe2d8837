"""What a test has left behind: processes that would take the jobs of the next test, files in the working directory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.eventually import eventually
from tests.support.pools import psutil_gone


def require_none_in(folder: Path) -> None:
    """Wait until none of ours works in the folder or below it; ends those that stay, and fails."""
    try:
        eventually(lambda: not _titles_in(folder))
    except AssertionError:
        left = _titles_in(folder)
        for pid in left:
            with psutil_gone():
                psutil.Process(pid).kill()
        raise AssertionError(f"left behind: {left}") from None


def files_of(folder: Path) -> set[str]:
    """The names of the files that are in it, not below it."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def _titles_in(folder: Path) -> dict[int, str]:
    found = {}
    for pid in psutil.pids():
        with psutil_gone(), suppress(OSError):  # it ended meanwhile, or is another user's
            if f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/"):
                found[pid] = " ".join(psutil.Process(pid).cmdline())
    return {pid: title for pid, title in found.items() if "queuepool" in title}
