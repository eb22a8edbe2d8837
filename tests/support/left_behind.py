"""What a test has left behind: processes that would take the jobs of the next test, files in the working directory."""

from __future__ import annotations

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
    for process in psutil.process_iter():
        with psutil_gone():
            title = _title_in(folder, process)
            if "queuepool" in title:
                found[process.pid] = title
    return found


def _title_in(folder: Path, process: psutil.Process) -> str:
    try:
        is_there = Path(process.cwd()).is_relative_to(folder)
    except psutil.AccessDenied:
        return ""
    return " ".join(process.cmdline()) if is_there else ""
