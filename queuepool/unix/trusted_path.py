"""Open a file where others may have been before us: whose links are followed, and that nothing is waited for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from queuepool.errors import ConfigError

_MOST_LINKS = 40
#: how a directory, or a link itself, is held without reading it (O_PATH is Linux's)
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_to_append(key: str, path: Path) -> int:
    """A descriptor for this path, made if it is not there. Raises ``OSError``.

    Raises ``ConfigError`` for a symbolic link that another user has put there, who would have us write where they
    cannot: also as a part of the path. Root's are followed, as those of ``/dev/stdout`` are.
    """
    rest = [*reversed(path.absolute().parts[1:])]
    here, shown, links = os.open("/", _PLACE), Path("/"), 0
    try:
        while True:
            name = rest.pop()
            target = _link(key, here, shown / name)
            if target is None and not rest:
                return _opened(key, here, shown / name, os.O_NOFOLLOW)
            if target is not None and _is_open_file(shown):
                return _opened(key, here, shown / name)
            if target is None:
                here, shown = _entered(here, name), shown / name
                continue
            links += 1
            if links > _MOST_LINKS:
                raise ConfigError(key, f"{path}: too many symbolic links")
            rest += reversed([part for part in Path(target).parts if part != "/"])
            if target.startswith("/"):
                here, shown = _entered(here, "/"), Path("/")
    except OSError as error:
        error.filename = str(path)  # each call has named one part of it
        raise
    finally:
        os.close(here)


def _link(key: str, here: int, path: Path) -> str | None:
    """Where it leads; ``None`` when it is no link, or not there."""
    try:
        about = os.lstat(path.name, dir_fd=here)
        if not stat.S_ISLNK(about.st_mode):
            return None
        target = os.readlink(path.name, dir_fd=here)
    except FileNotFoundError:
        return None
    if about.st_uid not in (0, os.geteuid()):
        raise ConfigError(key, f"{path} is a symbolic link of another user (uid {about.st_uid}): name the file itself")
    return target


def _entered(here: int, name: str) -> int:
    inner = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=here)
    os.close(here)
    return inner


def _is_open_file(folder: Path) -> bool:
    """``/proc/PID/fd``: what lies there looks like a link, and leads where no path does."""
    return folder.parts[1:2] == ("proc",) and folder.name == "fd"


def _opened(key: str, here: int, path: Path, more: int = 0) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC | more
    try:
        return os.open(path.name, flags, 0o666, dir_fd=here)
    except OSError as error:
        if _is_fifo(here, path.name):
            raise ConfigError(key, f"{path} is a FIFO that nobody reads") from error
        raise


def _is_fifo(here: int, name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name, dir_fd=here).st_mode)
    except OSError:
        return False
