"""Small file systems of the run's own, where mounting is allowed: filling them harms no other program."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path

_CLONE_NEWNS = 0x00020000  # linux/sched.h; Python has os.unshare from 3.12 on
_this_thread = threading.local()


def mount(folder: Path, size: str) -> bool:
    """For this thread and what it starts. ``False`` where it is not allowed; the folder is there in any case."""
    folder.mkdir(parents=True)
    options = f"size={size},mode=755"
    return _is_apart() and 0 == _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))


def unmount(folder: Path) -> None:
    if folder.is_mount():
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(filler: Path) -> None:
    """To the last byte."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            return  # as wanted


def _is_apart() -> bool:
    """Whether this thread has mounts of its own: they end with its last process, also when the run is killed."""
    if not getattr(_this_thread, "apart", False):
        unshared = 0 == ctypes.CDLL(None).unshare(_CLONE_NEWNS)
        _this_thread.apart = unshared and 0 == _run("mount", "--make-rslave", "/")
    return _this_thread.apart


def _run(*command: str) -> int:
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
