"""The default place of pools' directories, and which places are refused for one."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from queuepool.errors import ConfigError, NoRoom


def base() -> Path:
    """The default directory of this user. Raises ``ConfigError`` when it is not ours alone."""
    if os.getuid() == 0:
        return Path("/run/queuepool")
    if given := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(given) / "queuepool"
    import tempfile  # imported here: it is slow and rarely needed

    # A volume mounted at /tmp often lacks the sticky bit (Kubernetes' emptyDir); /dev/shm always has it.
    places = [Path(tempfile.gettempdir()), Path("/dev/shm")]
    safe = next((place for place in places if place.is_dir() and not _is_everybodys(place)), places[0])
    found = safe / f"queuepool-{os.getuid()}"
    with suppress(FileExistsError):
        found.mkdir(mode=0o700)
    if problem := problem_of(found, found.lstat(), os.getuid()):
        raise ConfigError("runtime_dir", f"{problem}, or set runtime_dir")
    return found


def problem_of(path: Path, about: os.stat_result, owner: int | None) -> str:
    """Why this is not a private directory of that user, and what to do; of any user if ``owner`` is ``None``."""
    if not stat.S_ISDIR(about.st_mode):
        return f"{path} is {'a symbolic link' if stat.S_ISLNK(about.st_mode) else 'no directory'}: remove it"
    if owner not in (None, about.st_uid):
        return f"{path} belongs to another user (uid {about.st_uid}): have it removed"
    if about.st_mode & 0o077:
        return f"{path} is open to others (mode {stat.S_IMODE(about.st_mode):04o}): chmod 700 {path}"
    return ""


def check_parents(path: Path) -> None:
    """Raise ``ConfigError`` when another user owns this directory, or could replace it.

    A user who can write to a parent can, unless that parent is sticky, as /tmp is.
    """
    for parent in (path, *path.parents):
        if _is_everybodys(parent):
            remedy = f"chmod o-w {parent}, or choose another place"
            raise ConfigError("runtime_dir", f"{parent} can be written by every user: {remedy}")
    if path.stat().st_uid not in (0, os.getuid()):
        raise ConfigError("runtime_dir", f"{path} belongs to another user (uid {path.stat().st_uid})")


def _is_everybodys(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


@contextmanager
def refusing(key: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` into a ``ConfigError``, or into ``NoRoom``, after which another start may succeed."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoom(where) from error
        raise ConfigError(key, f"{where}: {error.strerror}") from error
