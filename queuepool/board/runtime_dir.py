"""A pool's private directory, with its pidfile and its boards: where it is, and which places are refused.

The boards of other pools on this host may be written to only if they are in such a directory of this user.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from queuepool.board.about import FILE, About
from queuepool.board.board import Board, BoardName
from queuepool.board.record import SharedFile
from queuepool.config.connections import identity_of
from queuepool.config.settings import PoolSettings
from queuepool.errors import ConfigError, NoRoom, NotRunning, PoolRunning
from queuepool.unix import file_lock

#: an empty file whose modification time is that of the master's last pass
ALIVE = "alive"
#: seconds to wait for the pidfile's lock, and between two tries
_LOCK_WAIT, _LOCK_POLL = 2.0, 0.01
#: how often a directory is made that is gone before the pidfile is in it
_MAKINGS = 10


class RuntimeDir:
    """The directory of one pool on this host; it is refused unless it is ours with mode 0700.

    ``takes_any``: accept whatever pool runs there, not only the one that these settings describe.
    """

    def __init__(self, settings: PoolSettings, *, takes_any: bool = False) -> None:
        self.name = settings.name
        self._settings = settings
        self._takes_any = takes_any
        self.store = identity_of(settings.connection)
        self.path = ((settings.runtime_dir or base()) / settings.name).absolute()
        self._pidfile = Pidfile(self.path / "master.pid", self._running)

    def claim(self) -> None:
        """Become the only master. Raises ``PoolRunning``, ``NoRoom``, and ``ConfigError`` for an unsafe directory."""
        self._pidfile.claim(self._make)
        with refusing("runtime_dir", self.path / FILE):
            About.of(self._settings).write(self.path)

    def keep(self) -> bool:
        """Remain the only master even if the directory was removed; returns whether it had to be created again.

        Raises as ``claim``: another master may have been faster.
        """
        if self._pidfile.is_ours:
            return False
        self.claim()
        return True

    def close_in_child(self) -> None:
        """In a child: close the pidfile, so that a job that truncates all of its open files does not find it.

        The parent keeps the lock.
        """
        self._pidfile.close()

    def release(self) -> None:
        """Remove the pool's files, except for boards with unsettled jobs and the notes of deferred hooks."""
        if self._pidfile.is_ours:  # else another master's files are there, or nothing
            for unfinished in (*self.path.glob("draft.*"), *self.path.glob("taken.*")):  # its writer or reader is dead
                unfinished.unlink(missing_ok=True)
            (self.path / FILE).unlink(missing_ok=True)
            with suppress(OSError):  # a directory may be in its place
                (self.path / ALIVE).unlink()
            self._pidfile.remove()
        self._pidfile.close()
        with suppress(OSError):  # not empty, or the next master's
            self.path.rmdir()

    def master_pid(self) -> int:
        """The living master's pid, from the kernel's lock, not from the file.

        Raises ``NotRunning``, also when that master's pool is not the one that these settings mean.

        Raises ``ConfigError`` when the directory is another user's, who could make us signal any process. Root may use
        any user's.
        """
        try:
            self._check(self.path.lstat(), os.getuid() or None)
            pid = self._pidfile.holder()
        except OSError as error:
            raise NotRunning(self.name, self.path) from error
        if pid <= 0:
            raise NotRunning(self.name, self.path)
        found = self.about()
        if found and not self._takes_any and not found.is_meant_by(self._settings):
            raise NotRunning(self.name, self.path, found.in_place_of(self._settings, self.path))
        return pid

    def about(self) -> About | None:
        """What the pool in this directory records about itself; ``None`` when that cannot be read."""
        return About.read(self.path)

    def new_board(self, capacity: int, room_for: int = 0, lanes: int = 0) -> Board:
        """A new board of this process, as in ``Board.create``. Raises ``NoRoom`` and ``ConfigError``."""
        path = self.path / str(BoardName.own())
        with refusing("runtime_dir", path):
            return Board.create(path, capacity, self.store, room_for=room_for, lanes=lanes)

    def board(self, *, write: bool = False) -> Board:
        """The running pool's board. Raises as ``master_pid``."""
        pid = self.master_pid()
        path = self.path / str(BoardName.of(pid))
        try:
            return Board.open(path, write=write) if path.exists() else _removed(path, pid, write=write)
        except (OSError, ValueError) as error:
            raise NotRunning(self.name, self.path) from error

    def board_paths(self) -> list[Path]:
        """The boards of this pool's masters, living and killed. (The files beside a board have one more dot.)"""
        return sorted(path for path in self.path.glob("board.*") if path.name.count(".") == 1)

    def remove_leftovers(self) -> None:
        """Remove what a killed master left, its pidfile and its directory, unless a new master has started."""
        with suppress(PoolRunning, ConfigError, NoRoom):
            self._pidfile.lock()
            self.release()

    def _make(self) -> None:
        with refusing("runtime_dir", self.path):
            for parent in reversed(self.path.parents):
                parent.mkdir(mode=0o755, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            found = self.path.lstat()
            check_parents(self.path.parent.resolve())
        self._check(found, os.getuid())

    def _check(self, about: os.stat_result, owner: int | None) -> None:
        if problem := problem_of(self.path, about, owner):
            raise ConfigError("runtime_dir", problem)

    def _running(self, pid: int) -> PoolRunning:
        found = self.about()
        return PoolRunning(self.name, pid, self.path, found.description if found else "")


def _removed(path: Path, pid: int, *, write: bool) -> Board:
    """The board at ``path``, which was removed but which its master has open. Raises ``OSError``."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(link).startswith(str(path)):
            return Board.opened(os.open(link, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC), path)
    raise FileNotFoundError(path)


class Pidfile:
    """A pool's pidfile, whose lock allows one master only.

    The lock decides, not the text: no child inherits it, and it ends with the process, however that ends.

    ``running`` makes the error for a lock that another process holds, from that process's pid.
    """

    def __init__(self, path: Path, running: Callable[[int], PoolRunning]) -> None:
        self.path = path
        self._running = running
        self._fd = -1

    def claim(self, make_directory: Callable[[], None]) -> None:
        """Lock the file and write our pid, in a directory made for it. Raises ``PoolRunning`` and ``ConfigError``."""
        fd = self._locked_in(make_directory)
        while not self._is_in_place(fd):  # its last owner removed it while we took the lock
            os.close(fd)
            fd = self._locked_in(make_directory)
        with refusing("runtime_dir", self.path):
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self.close()  # a former one, which was removed
        self._fd = fd

    def lock(self) -> None:
        """Take the lock now. Raises as ``claim``."""
        self._fd = self._locked()

    @property
    def is_ours(self) -> bool:
        """Whether we hold the lock on the file that is in its place."""
        return self._is_in_place(self._fd)

    def holder(self) -> int:
        """The pid of the process that holds the lock; 0 = none, or one in another container. Raises ``OSError``."""
        fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with _closing(fd):
            return file_lock.holder(fd) or 0

    def remove(self) -> None:
        """Remove the file; the lock stays."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give up the lock; in a child, the parent keeps it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _locked_in(self, make_directory: Callable[[], None]) -> int:
        """Take the lock in the directory; its last owner may remove that again before the file is in it."""
        made = 0
        while True:
            try:
                made += 1
                make_directory()
                return self._locked_soon()
            except ConfigError as error:
                if not isinstance(error.__cause__, FileNotFoundError) or made == _MAKINGS:
                    raise

    def _locked_soon(self) -> int:
        """Take the lock; wait for one that may be a steward's, which removes leftovers: a master has a board."""
        until = time.monotonic() + _LOCK_WAIT
        while True:
            try:
                return self._locked()
            except PoolRunning as error:
                if time.monotonic() >= until or any(self.path.parent.glob(f"board.{error.pid}-*")):
                    raise
            time.sleep(_LOCK_POLL)

    def _locked(self) -> int:
        with refusing("runtime_dir", self.path):
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(fd)
            raise ConfigError("runtime_dir", f"{self.path} is not a file of yours: remove it")
        try:
            file_lock.lock(fd)
        except OSError as error:
            with _closing(fd):
                raise self._running(file_lock.holder(fd) or 0) from error
        return fd

    def _is_in_place(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self.path.lstat())
        except OSError:
            return False


@contextmanager
def _closing(fd: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(fd)


def base() -> Path:
    """The default place of this user's pools. Raises ``ConfigError`` when it is not ours alone."""
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
        return f"{path} is {'a symbolic link' if stat.S_ISLNK(about.st_mode) else 'not a directory'}: remove it"
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
            raise ConfigError("runtime_dir", f"{parent} is writable by every user: {remedy}")
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

    A directory that is not private, or another user's, counts as empty: its boards could name any process.
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
    except (OSError, ValueError):  # a notice of any host may name any place
        return
    # The files beside a board have one more dot.
    for path in () if is_refused else sorted(folder.glob("board.*")):
        if path.name.count(".") == 1:
            with suppress(OSError, ValueError):  # it is gone by now, or of another version
                yield Board.open(path, write=True)
