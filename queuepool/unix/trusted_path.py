"""Open a file in a place that others may write to: follow trusted links only, and wait for nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from queuepool.errors import ConfigError

_MAX_LINKS = 40
#: opens a directory, or a link itself, without reading it (O_PATH is Linux's)
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_to_append(key: str, path: Path) -> int:
    """A descriptor for appending to this path; the file is made if it does not exist. Raises ``OSError``.

    Raises ``ConfigError`` for another user's symbolic link anywhere in the path, which could make us write where that
    user cannot. Our own and root's links are followed (``/dev/stdout`` is one). Also raises it for more than 40 links
    and for a FIFO without a reader.
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
            if links > _MAX_LINKS:
                raise ConfigError(key, f"{path}: too many symbolic links")
            rest += reversed([part for part in Path(target).parts if part != "/"])
            if target.startswith("/"):
                here, shown = _entered(here, "/"), Path("/")
    except OSError as error:
        error.filename = str(path)  # each call names only one part of it
        raise
    finally:
        os.close(here)


def _link(key: str, here: int, path: Path) -> str | None:
    """The link's target; ``None`` when it is not a link or does not exist."""
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
    """Whether this is ``/proc/PID/fd``: an entry there looks like a link, but leads where no path does."""
    return folder.parts[1:2] == ("proc",) and folder.name == "fd"


def _opened(key: str, here: int, path: Path, more: int = 0) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC | more
    try:
        return os.open(path.name, flags, 0o666, dir_fd=here)
    except OSError as error:
        if _is_fifo(here, path.name):
            raise ConfigError(key, f"{path} is a FIFO without a reader") from error
        raise


def _is_fifo(here: int, name: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(name, dir_fd=here).st_mode)
    except OSError:
        return False
